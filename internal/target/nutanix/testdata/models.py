"""Reads requests, a JSON object {"method", "path", "body", "headers"} per line, and holds their bodies against the models of Nutanix's SDKs for version 4.

Prints what does not fit: fields that a model does not have, values that it refuses, and fields of several types without $objectType.
"""
import importlib
import json
import re
import sys
import warnings

warnings.filterwarnings("ignore")

PACKAGES = {"vmm": "ntnx_vmm_py_client", "clustermgmt": "ntnx_clustermgmt_py_client", "prism": "ntnx_prism_py_client",
            "dataprotection": "ntnx_dataprotection_py_client"}
BODIES = [  # model of the body by method and path; None: without a body
    (r"POST vmm ahv/config/vms", "vmm.v4.ahv.config.Vm"),
    (r"PUT vmm ahv/config/vms/[^/]+", "vmm.v4.ahv.config.Vm"),
    (r"DELETE vmm ahv/config/vms/[^/]+", None),
    (r"POST vmm ahv/config/vms/[^/]+/\$actions/power-(on|off)", None),
    (r"POST vmm ahv/config/vms/[^/]+/\$actions/clone", "vmm.v4.ahv.config.CloneOverrideParams"),
    (r"POST vmm ahv/config/vms/[^/]+/\$actions/migrate-to-host", "vmm.v4.ahv.config.VmMigrateToHostParams"),
    (r"POST vmm ahv/config/vms/[^/]+/\$actions/revert", "vmm.v4.ahv.config.RevertParams"),
    (r"POST vmm ahv/config/vms/[^/]+/\$actions/customize-guest", "vmm.v4.ahv.config.GuestCustomizationParams"),
    (r"POST dataprotection config/recovery-points", "dataprotection.v4.config.RecoveryPoint"),
    (r"DELETE dataprotection config/recovery-points/[^/]+", None),
    (r"POST prism config/categories", "prism.v4.config.Category"),
    (r"PUT prism config/categories/[^/]+", "prism.v4.config.Category"),
    (r"DELETE prism config/categories/[^/]+", None),
    (r"POST prism config/tasks/[^/]+/\$actions/cancel", None),
    (r"PUT clustermgmt config/storage-containers/[^/]+", "clustermgmt.v4.config.StorageContainer"),
    (r"POST clustermgmt operations/clusters/[^/]+/hosts/[^/]+/\$actions/enter-host-maintenance",
     "clustermgmt.v4.operations.EnterHostMaintenanceSpec"),
    (r"POST clustermgmt operations/clusters/[^/]+/hosts/[^/]+/\$actions/exit-host-maintenance",
     "clustermgmt.v4.operations.HostMaintenanceCommonSpec"),
]
PLAIN = {"str": str, "bool": bool, "int": int, "float": (int, float), "object": object}
faults = set()


def model(package, name):
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module("%s.models.%s.%s" % (package, module, last)), last)


def check(package, kind, value, where):
    """Holds a value against the type of a model's attribute."""
    if value is None:
        return
    if kind.startswith("list["):
        if not isinstance(value, list):
            faults.add("%s: want a list, got %r" % (where, value))
            return
        for one in value:
            check(package, kind[5:-1], one, where + "[]")
    elif kind.startswith("dict(") or kind in ("datetime", "date"):
        pass
    elif kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or kind == "int" and isinstance(value, bool):
            faults.add("%s: want %s, got %r" % (where, kind, value))
    elif kind.startswith("OneOf"):
        choices = model(package, kind).discriminator_value_class_map
        chosen = value.get("$objectType") if isinstance(value, dict) else None
        if isinstance(value, dict) and chosen not in choices:
            faults.add("%s: $objectType %r, want one of %s" % (where, chosen, ", ".join(choices)))
        elif isinstance(value, dict):
            check(package, choices[chosen], value, where)
    else:
        check_object(package, model(package, kind), value, where)


def check_object(package, cls, value, where):
    if not hasattr(cls, "attribute_map") or not cls.attribute_map:  # an enumeration
        allowed = [v for k, v in vars(cls).items() if k.isupper() and isinstance(v, str)]
        if value not in allowed:
            faults.add("%s: %r, want one of %s" % (where, value, ", ".join(allowed)))
        return
    if not isinstance(value, dict):
        faults.add("%s: want an object, got %r" % (where, value))
        return
    said = value.get("$objectType")
    one = cls()
    if said is not None and said != one.get_object_type():
        faults.add("%s: $objectType %s, want %s" % (where, said, one.get_object_type()))
    names = {v: k for k, v in cls.attribute_map.items()}
    for field, inner in value.items():
        if field.startswith("$"):
            continue
        if field not in names:
            faults.add("%s: %s has no field %r" % (where, cls.__name__, field))
            continue
        kind = cls.swagger_types[names[field]]
        check(package, kind, inner, where + "." + field)
        if kind in PLAIN:
            try:
                setattr(one, names[field], inner)
            except ValueError as e:
                faults.add("%s.%s: %s" % (where, field, e))


seen = 0
for line in sys.stdin:
    request = json.loads(line)
    match = re.match(r"/api/([a-z]+)/v4\.[0-9]+/(.*)", request["path"])
    what = "%s %s %s" % (request["method"], match[1], match[2])
    found = [body for pattern, body in BODIES if re.fullmatch(pattern, what)]
    if not found:
        faults.add("%s: not a request that this test knows" % what)
        continue
    seen += 1
    if found[0] is None:
        if request["body"]:
            faults.add("%s: a body where there is none: %r" % (what, request["body"]))
        continue
    check(PACKAGES[match[1]], found[0], json.loads(request["body"] or "null"), re.sub(r"[0-9a-f]{8}-[-0-9a-f]{27}", "ID", what))
for fault in sorted(faults):
    print(fault)
if not seen:
    print("no requests")
