"""Suggestions for keys and values that an experiment file's table does not have."""

import difflib
import re

import msgspec.inspect as types


def meant(message: str, root: type) -> str:
    """`; did you mean KEY?` for a decoder's message about an unknown key of `root`; else nothing.

    For its message about a value of a list of values: `; it can be ...`, all of them.
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
    """The type of a value at a decoder's path (`.links[0].mtu`) of `root`."""
    place = types.type_info(root)
    for step in re.findall(r"\.\w+|\[", path):
        place = inner(_only(place), step.removeprefix("."))
    return _only(place)


def inner(place: types.Type, step: str) -> types.Type:
    """The type of a table's key, of the items of a list, or of the values of any keys (`[`)."""
    match place:
        case types.StructType(fields=fields):
            return next((field.type for field in fields if field.encode_name == step), place)
        case types.VarTupleType(item_type=item) | types.ListType(item_type=item):
            return item
        case types.DictType(value_type=value):
            return value
    return place


def _only(place: types.Type) -> types.Type:
    """The type of an optional value, without its bounds."""
    if isinstance(place, types.Metadata):
        return _only(place.type)
    if isinstance(place, types.UnionType):
        return next(_only(kind) for kind in place.types if not isinstance(kind, types.NoneType))
    return place
