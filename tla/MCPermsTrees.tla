---------------------------- MODULE MCPermsTrees ----------------------------
(* Trees for HubPerms. *)
EXTENDS HubPerms

TwoParents == [h \in {"A", "B"} |-> "root"]
ChainParents == [h \in {"mid", "A"} |-> IF h = "A" THEN "mid" ELSE "root"]

\* Nodes that nothing tells apart, for models in which they are model values. Sound: no set of several nodes is folded, and
\* what is chosen among hubs does not depend on nodes.
AlikeNodes == Permutations(Nodes)
=============================================================================
