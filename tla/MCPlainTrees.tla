---------------------------- MODULE MCPlainTrees ----------------------------
(***************************************************************************)
(* Trees in which some hubs know only the documents (PlainHub.tla).         *)
(***************************************************************************)
EXTENDS MCTrees

\* The first socket stays at the plain hub B, the second is used at the other hubs.
AtBAndElsewhere == {<<"p", "B", d>> : d \in Devices} \cup {<<"q", h, d>> : h \in Hubs \ {"B"}, d \in Devices}

OnlineAtB == <<<<"p", "B", "d">>>>

\* Two devices that were registered at the root come to A, each with a socket of its own.
EachAtA == {<<"p", "A", "d">>, <<"q", "A", "e">>}
BothAtRoot == <<<<"r", "root", "d">>, <<"s", "root", "e">>>>
=============================================================================
