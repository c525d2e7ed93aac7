"""Data sets and plugins in the user's own files: npz arrays, a folder of CSV tables, a saved PyG ``Data``, or a single-module plugin.

``tables`` and ``csv_tables`` read files into arrays, ``labels`` and ``times`` interpret them, ``forms`` builds the items, ``options``
defines the user's options, and ``understood`` reports how the file was interpreted. ``READER`` in ``given`` is only part of the keys of
user data.
"""
