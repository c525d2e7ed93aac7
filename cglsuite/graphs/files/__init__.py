"""Data sets and plugins in plain files: arrays in an npz, tables in a folder, a saved PyG ``Data``, and a method in one module.

``tables`` and ``csv_tables`` read files into arrays, ``labels`` and ``times`` interpret them, ``forms`` builds the items, ``options``
holds the user's options, and ``understood`` reports how the file was interpreted. ``READER`` in ``given`` is only in keys of user data.
"""
