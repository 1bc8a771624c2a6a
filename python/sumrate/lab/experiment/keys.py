"""Which key was meant by one that an experiment file's table does not have."""

import difflib
import re

import msgspec.inspect as types


def meant(message: str, root: type) -> str:
    """`; did you mean KEY?` for a decoder's word about an unknown key of `root`; else nothing."""
    found = re.search(r"unknown field `([^`]+)`(?: - at `\$([^`]*)`)?", message)
    if found is None:
        return ""
    place = types.type_info(root)
    for step in re.findall(r"\.\w+|\[", found[2] or ""):
        place = _inside(place, step.removeprefix("."))
    keys = (
        [field.encode_name for field in place.fields] if isinstance(place, types.StructType) else []
    )
    near = difflib.get_close_matches(found[1], keys, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _inside(place: types.Type, step: str) -> types.Type:
    """The type of a table's key, of the items of a list, or of the values of any keys (`[`)."""
    match _only(place):
        case types.StructType(fields=fields):
            return next((_only(f.type) for f in fields if f.encode_name == step), place)
        case types.VarTupleType(item_type=inner) | types.ListType(item_type=inner):
            return _only(inner)
        case types.DictType(value_type=inner):
            return _only(inner)
        case other:
            return other


def _only(place: types.Type) -> types.Type:
    """What an optional value is if it is there."""
    if isinstance(place, types.UnionType):
        return next(kind for kind in place.types if not isinstance(kind, types.NoneType))
    return place
