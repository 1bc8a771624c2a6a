"""What was meant by a key or a value that an experiment file's table does not have."""

import difflib
import re

import msgspec.inspect as types


def meant(message: str, root: type) -> str:
    """`; did you mean KEY?` for a decoder's word about an unknown key of `root`; else nothing.

    For its word about a value that is none of those there are: `; it can be ...`, all of them.
    """
    if found := re.search(r"Invalid enum value .* - at `\$([^`]*)`", message):
        value = _at(root, found[1])
        some = value.values if isinstance(value, types.LiteralType) else ()
        return f"; it can be {', '.join(map(str, some))}" if some else ""
    found = re.search(r"unknown field `([^`]+)`(?: - at `\$([^`]*)`)?", message)
    if found is None:
        return ""
    place = _at(root, found[2] or "")
    keys = (
        [field.encode_name for field in place.fields] if isinstance(place, types.StructType) else []
    )
    near = difflib.get_close_matches(found[1], keys, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _at(root: type, path: str) -> types.Type:
    """The type of what is at a decoder's path (`.links[0].mtu`) of `root`."""
    place = types.type_info(root)
    for step in re.findall(r"\.\w+|\[", path):
        place = _inside(place, step.removeprefix("."))
    return place


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
