---------------------------- MODULE MCPermsTrees ----------------------------
(* Trees for HubPerms. *)
EXTENDS HubPerms

TwoParents == [h \in {"A", "B"} |-> "root"]
ChainParents == [h \in {"mid", "A"} |-> IF h = "A" THEN "mid" ELSE "root"]
=============================================================================
