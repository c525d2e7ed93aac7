"""Data sets and plugins in plain files: arrays in an npz, tables in a folder, a saved PyG ``Data``, and a method in one module.

``tables`` and ``csv_tables`` read files to arrays, ``labels`` and ``times`` say what they mean, ``forms`` what they amount to, ``options``
what users say of them, and ``understood`` prints what was understood. ``READER`` in ``given`` is in the keys of own data alone.
"""
