"""Raw data files, and the cache of what is derived from them."""

from cglsuite.base.datafiles.root import UNREADABLE, DataRoot, RawFile

__all__ = ["UNREADABLE", "DataRoot", "RawFile"]
