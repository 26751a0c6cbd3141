------------------------------ MODULE MCTrees ------------------------------
(***************************************************************************)
(* The trees, and who may connect where. What bounds a model is said in    *)
(* models.toml.                                                            *)
(***************************************************************************)
EXTENDS Refinement

\* root - A, root - B
TwoParents == [h \in {"A", "B"} |-> "root"]
TwoNodes == [h \in {"root", "A", "B"} |-> CASE h = "root" -> 1 [] h = "A" -> 3 [] h = "B" -> 4]

\* root - A
OneParent == [h \in {"A"} |-> "root"]
OneNode == [h \in {"root", "A"} |-> IF h = "root" THEN 1 ELSE 3]

\* root - mid - A, root - B
ThreeParents == [h \in {"mid", "A", "B"} |-> IF h = "A" THEN "mid" ELSE "root"]
ThreeNodes == [h \in {"root", "mid", "A", "B"} |->
                CASE h = "root" -> 1 [] h = "mid" -> 2 [] h = "A" -> 3 [] h = "B" -> 4]

\* root - mid - A, mid - B; with the nodes of the tree before
ForkParents == [h \in {"mid", "A", "B"} |-> IF h = "mid" THEN "root" ELSE "mid"]

\* root - mid - A
ChainParents == [h \in {"mid", "A"} |-> IF h = "A" THEN "mid" ELSE "root"]
ChainNodes == [h \in {"root", "mid", "A"} |-> CASE h = "root" -> 1 [] h = "mid" -> 2 [] h = "A" -> 3]

\* A port is named after its hub; a second one, for late notices, has a 2.
OneOwner == [p \in HubPorts |-> IF p \in {"A", "A2"} THEN "A" ELSE IF p \in {"B", "B2"} THEN "B" ELSE "mid"]

\* A drop is noticed late by the child.
ChildEnd == "child"

Anywhere == Sockets \X Hubs \X Devices
AtA == Sockets \X {"A"} \X Devices
AtLeaves == Sockets \X {"A", "B"} \X Devices
NotAtRoot == Sockets \X (Hubs \ {Root}) \X Devices

\* The first socket stays at A, the second roams elsewhere.
HomeAndAway == {<<"p", "A", d>> : d \in Devices} \cup {<<"q", h, d>> : h \in Hubs \ {"A"}, d \in Devices}

\* Two hubs, one socket each.
AtAAndB == {<<"p", "A", d>> : d \in Devices} \cup {<<"q", "B", d>> : d \in Devices}

\* The first socket stays where it is online, the second is used at the root and B.
AtRootAndB == {<<"q", h, d>> : h \in {"root", "B"}, d \in Devices}

\* One socket per device.
OwnSocket == {<<"p", h, "d">> : h \in Hubs} \cup {<<"q", h, "e">> : h \in Hubs}

\* Two devices at A, a socket each; the second one comes to the root, too.
HomesAndRoot == {<<"p", "A", "d">>, <<"q", "A", "e">>, <<"r", "root", "e">>}

\* One comes to the root only, the other stays at A.
Apart == {<<"r", "root", "d">>, <<"q", "A", "e">>}

\* Two sockets at A.
BothAtAOnly == {"p", "q"} \X {"A"} \X Devices

NoneOnline == <<>>
OnlineAtA == <<<<"p", "A", "d">>>>
BothAtA == <<<<"p", "A", "d">>, <<"q", "A", "e">>>>
TwoOnline == <<<<"p", "A", "d">>, <<"q", "root", "e">>>>
OnlineAtRoot == <<<<"p", "root", "d">>>>
ThirdAtRoot == <<<<"r", "root", "d">>>>
OnlineAtMid == <<<<"p", "mid", "d">>>>
=============================================================================
