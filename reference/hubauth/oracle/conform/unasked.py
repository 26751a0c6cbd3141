"""Rules that nobody outside a hub can ask about, and why."""

UNASKED = {
    "FRAME-20": "links that are not up cannot be spoken on",
    "TRUST-2": "shows only after a change of policy",
    "TRUST-4": "would make a provisioned device useless for ever",
    "TRUST-5": "for laboratories; off by default",
    "TRUST-9": "is about the configuration: where a hub connects from",
    "TRUST-8": "shows only before a hub has ever been admitted by its parent",
    "AUTHY-1": "needs an authority elsewhere in the tree",
    "REG-3": "needs four thousand million registrations",
    "AUTH-22": "is about what a hub keeps in memory",
    "REG-20": "is about the configuration",
    "PERM-16": "shows only after a change of policy",
    "PERM-17": "needs thousands of registered nodes",
    "LINK-8": "is about the configuration of a running hub",
    "LINK-9": "is about the configuration of a running hub",
    "CFG-1": "is about the configuration",
    "CFG-2": "is about the configuration",
    "CFG-3": "is about the configuration",
    "CFG-4": "is about the configuration",
    "CFG-5": "is about the configuration",
    "CFG-6": "is about the configuration",
}
