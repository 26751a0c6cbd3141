------------------------------ MODULE HubPerms ------------------------------
(***************************************************************************)
(* Roles and permissions: asking the authority for them, caching the       *)
(* answers, forgetting them.  What a node may do is abstracted to the      *)
(* version of the authority's policy that says so: 1, 2, ...  Follows       *)
(* reference/hubauth/core/perms.py and, for links and sessions, links.py,   *)
(* presence.py and admission.py.                                           *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Hubs, Root, ParentOf,
    Authority,          \* the root or a child of it
    Nodes,              \* nodes whose permissions are asked for
    AskAt, CheckAt, CommandAt, DropAt, TimeoutAt,   \* hubs where that may happen
    Asks, Checks, Changes, Commands, Drops, Timeouts, Leaves,   \* how often
    Refreshing,         \* subset of BOOLEAN: whether an operator's command asks for fresh answers
    Bug                 \* "" or the name of one deliberate mistake

Below == Hubs \ {Root}
Children(h) == {c \in Below : ParentOf[c] = h}

VARIABLES
    hub,        \* [Hubs -> [present, linked, cache, pend]]
    up, down,   \* [Below -> frames in flight]
    version,    \* [Nodes -> what the authority's policy says now]
    gone,       \* <<hub, device>> without a session, its link still there: a node, or 0 for the one that asks about others,
                \* whose own role every hub knows
    told,       \* history: [Hubs -> [Nodes -> the newest version this hub was told of]]
    waiting,    \* history: <<hub, request>> of devices, not answered yet
    ops,        \* requests so far
    left,
    act         \* history, hidden by the view
vars == <<hub, up, down, version, gone, told, waiting, ops, left, act>>
View == <<hub, up, down, version, gone, told, waiting, ops, left>>

Fold(op(_, _), base, seq) ==
    LET f[i \in 0 .. Len(seq)] == IF i = 0 THEN base ELSE op(f[i - 1], seq[i]) IN f[Len(seq)]
FoldSet(op(_, _), base, set) ==
    LET f[s \in SUBSET set] == IF s = {} THEN base ELSE LET x == CHOOSE x \in s : TRUE IN op(f[s \ {x}], x) IN f[set]

Begin(h) == [h |-> h, s |-> hub[h], out |-> <<>>, ops |-> ops, told |-> told[h]]
Emit(t, link, m) == [t EXCEPT !.out = Append(@, [to |-> link, m |-> m])]

---------------------------------------------------------------------------
\* One hub

\* AUTHY-1, AUTHY-2, AUTHY-5, AUTHY-6
AuthorityHop(t, from) ==
    LET above == IF t.s.present THEN "up" ELSE ""
        way == IF Authority \in t.s.linked THEN Authority ELSE above
    IN IF way = from THEN "" ELSE way

\* `old` is history: this hub has been told to forget since it asked.
Nothing == [ver |-> 0, old |-> FALSE]

\* Who asks: a permission that a node needs is checked when it asks for something itself, and so it is when it returns.
Speaker(kind, n) == IF kind = "get" THEN 0 ELSE n

Settle(t, q, code, v) ==
    CASE q.asker = "" -> t
      [] q.asker = "device" -> [t EXCEPT !.out = Append(@, [to |-> "device", op |-> q.op,
                                    m |-> [kind |-> q.kind, node |-> q.node, code |-> code, ver |-> v, old |-> q.old]])]
      [] OTHER -> Emit(t, q.asker, [t |-> "ans", op |-> q.op, node |-> q.node, code |-> code, ver |-> v])

Ask(t, q) == [Emit(t, q.asked, [t |-> "get", op |-> q.op, node |-> q.node]) EXCEPT !.s.pend = Append(@, q)]

Query(kind, op, asked, asker, n) ==
    [kind |-> kind, op |-> op, asked |-> asked, asker |-> asker, node |-> n, stale |-> FALSE, old |-> FALSE]

\* AUTH-28, TRUST-7: nobody answers. A device that waits to be admitted is, with what is known by then.
Fail(t, q) ==
    CASE q.kind = "held" -> Settle(t, q, "denied", 0)
      [] q.kind = "admit" -> Settle(t, [q EXCEPT !.old = t.s.cache[q.node].old], "ok", t.s.cache[q.node].ver)
      [] OTHER -> Settle(t, q, "away", 0)

\* PERM-1, PERM-2, TRUST-7, AUTH-27: kind "get" wants an answer, kind "held" a decision, kind "admit" a session.
OnGet(t, from, kind, op, n) ==
    LET known == IF t.h = Authority THEN version[n] ELSE t.s.cache[n].ver
        way == AuthorityHop(t, from)
        q == Query(kind, op, way, from, n)
    IN IF known # 0 THEN Settle(t, [q EXCEPT !.old = t.h # Authority /\ t.s.cache[n].old], "ok", known)
       ELSE IF way = "" THEN Fail(t, q)
       ELSE Ask(t, q)

\* PERM-4, PERM-5, TRUST-7, AUTH-28
OnAnswer(t, link, m) ==
    LET match(q) == q.op = m.op /\ q.asked = link
        found == SelectSeq(t.s.pend, match)
        q == found[1]
        taken == [t EXCEPT !.s.pend = SelectSeq(@, LAMBDA x : ~match(x))]
        usable == m.code = "ok" /\ (~q.stale \/ Bug = "StaleAnswersCached")
        learnt == IF usable /\ t.h # Authority THEN [taken EXCEPT !.s.cache[m.node] = [ver |-> m.ver, old |-> q.old]] ELSE taken
        decided == usable \/ (Bug = "StaleAnswersDecide" /\ m.code = "ok")
    IN IF found = <<>> THEN t
       ELSE IF q.kind = "held" /\ ~decided THEN Settle(learnt, q, "denied", 0)
       ELSE IF q.kind = "admit" /\ ~(Bug = "StaleAnswersAdmit" /\ m.code = "ok") THEN Fail(learnt, q)
       ELSE Settle(learnt, q, m.code, m.ver)

\* What is asked or, by mistake, kept at this moment is too old from now on.
Outdated(q, hit) == IF q.node \in hit THEN [q EXCEPT !.stale = TRUE, !.old = TRUE] ELSE q
Kept(entry) == IF entry = Nothing THEN entry ELSE [entry EXCEPT !.old = TRUE]

\* PERM-12, PERM-18, PERM-14; nodes = {}: all. `news` is history: the versions at the authority when it was issued.
Invalidate(t, nodes, refresh, news, from) ==
    LET hit == IF nodes = {} THEN Nodes ELSE nodes
        cached == {n \in nodes : t.s.cache[n] # Nothing}
        forgotten(entry) == IF Bug = "CacheKept" THEN Kept(entry) ELSE Nothing
        forgot == [t EXCEPT !.s.cache = [n \in Nodes |-> IF n \in hit THEN forgotten(@[n]) ELSE @[n]],
                            !.s.pend = [i \in DOMAIN @ |-> Outdated(@[i], hit)],
                            !.told = [n \in Nodes |-> IF n \in hit /\ news[n] > @[n] THEN news[n] ELSE @[n]]]
        m == [t |-> "inval", nodes |-> nodes, refresh |-> refresh, news |-> news]
        passed == FoldSet(LAMBDA u, c : Emit(u, c, m), forgot, t.s.linked \ {from})
        way == AuthorityHop(t, "")
        again(u, n) == [Ask(u, Query("get", u.ops + 1, way, "", n)) EXCEPT !.ops = @ + 1]
    IN IF refresh /\ t.h # Authority /\ way # "" THEN FoldSet(again, passed, cached) ELSE passed

FailAsked(t, link) ==
    LET lost == SelectSeq(t.s.pend, LAMBDA q : q.asked = link)
        rest == [t EXCEPT !.s.pend = SelectSeq(@, LAMBDA q : q.asked # link)]
        others == SelectSeq(lost, LAMBDA q : q.kind # "admit")
        admitted == IF Bug = "LossForgetsAdmissions" THEN <<>> ELSE SelectSeq(lost, LAMBDA q : q.kind = "admit")
    IN IF Bug = "LossUnanswered" THEN t ELSE Fold(Fail, rest, others \o admitted)

ForgetAsker(t, link) == [t EXCEPT !.s.pend = SelectSeq(@, LAMBDA q : q.asker # link)]

\* LINK-10: a device's session ends and its link stays; what it asked and needs that session is refused.
RefuseNeedingSession(t, device) ==
    LET asked(q) == q.asker = "device" /\ Speaker(q.kind, q.node) = device
        rest == [t EXCEPT !.s.pend = SelectSeq(@, LAMBDA q : ~asked(q))]
    IN CASE Bug = "LeavingKeepsRequests" -> t
         [] Bug = "LeavingForgetsRequests" -> rest
         [] OTHER -> Fold(LAMBDA u, q : Settle(u, q, "denied", 0), rest, SelectSeq(t.s.pend, asked))

LinkDown(t, link) ==
    IF link = "up" THEN ForgetAsker(FailAsked([t EXCEPT !.s.present = FALSE], "up"), "up")
    ELSE ForgetAsker([FailAsked(t, link) EXCEPT !.s.linked = @ \ {link}], link)

\* LINK-2, LINK-3
OnJoin(t, c) ==
    Emit([t EXCEPT !.s.linked = @ \cup {c}], c, [t |-> "joined", news |-> t.told])

\* PERM-7: what this hub may have missed, the hubs below it have missed, too.
OnJoined(t, m) ==
    LET here == [t EXCEPT !.s.present = TRUE]
        forgotten(entry) == IF Bug = "ReturnKeepsCache" THEN Kept(entry) ELSE Nothing
        emptied == [here EXCEPT !.s.cache = [n \in Nodes |-> forgotten(@[n])],
                                !.s.pend = [i \in DOMAIN @ |-> Outdated(@[i], Nodes)],
                                !.told = m.news]
        below == FoldSet(LAMBDA u, c : Emit(u, c, [t |-> "inval", nodes |-> {}, refresh |-> FALSE, news |-> m.news]),
                         emptied, t.s.linked)
    IN IF t.h = Authority THEN here ELSE IF Bug = "ReturnTellsNobody" THEN emptied ELSE below

\* PERM-11, PERM-18: it comes from the parent and never goes up.
OnInvalidate(t, link, m) == Invalidate(t, m.nodes, m.refresh, m.news, link)

Handle(t, link, m) ==
    CASE m.t = "join" -> OnJoin(t, link)
      [] m.t = "joined" -> OnJoined(t, m)
      [] m.t = "get" -> OnGet(t, link, "get", m.op, m.node)
      [] m.t = "ans" -> OnAnswer(t, link, m)
      [] m.t = "inval" -> OnInvalidate(t, link, m)

---------------------------------------------------------------------------
\* The tree. A child's port is its name; a device's is "device".

Place(g, t) ==
    LET place(u, o) ==
            CASE o.to = "up" -> [u EXCEPT !.up[t.h] = Append(@, o.m)]
              [] o.to \in Below -> [u EXCEPT !.down[o.to] = Append(@, o.m)]
              [] OTHER -> [u EXCEPT !.log = Append(@, [h |-> t.h, m |-> o.m, due |-> <<t.h, o.op>> \in u.waiting]),
                                    !.waiting = @ \ {<<t.h, o.op>>},
                                    !.gone = IF o.m.kind = "admit" THEN @ \ {<<t.h, o.m.node>>} ELSE @]
        clear == [g EXCEPT !.hub[t.h] = t.s, !.told[t.h] = t.told, !.ops = t.ops]
    IN Fold(place, clear, t.out)

Now == [hub |-> hub, up |-> up, down |-> down, gone |-> gone, told |-> told, waiting |-> waiting, ops |-> ops, log |-> <<>>]

Become(next, event) ==
    \E g \in {next} :
        /\ hub' = g.hub /\ up' = g.up /\ down' = g.down /\ gone' = g.gone
        /\ told' = g.told /\ waiting' = g.waiting /\ ops' = g.ops
        /\ act' = [event |-> event, log |-> g.log]

Spend(what) == left[what] > 0 /\ left' = [left EXCEPT ![what] = @ - 1]

Init ==
    /\ hub = [h \in Hubs |-> [present |-> h # Root, linked |-> Children(h), cache |-> [n \in Nodes |-> Nothing], pend |-> <<>>]]
    /\ up = [c \in Below |-> <<>>] /\ down = [c \in Below |-> <<>>]
    /\ version = [n \in Nodes |-> 1] /\ told = [h \in Hubs |-> [n \in Nodes |-> 1]] /\ ops = 0
    /\ gone = {} /\ waiting = {}
    /\ left = [ask |-> Asks, check |-> Checks, change |-> Changes, command |-> Commands, drop |-> Drops, late |-> Timeouts,
               leave |-> Leaves]
    /\ act = [event |-> <<"Init">>, log |-> <<>>]

DeviceAsks(h, n, kind) ==
    /\ Spend(IF kind = "get" THEN "ask" ELSE "check") /\ h \in (IF kind = "get" THEN AskAt ELSE CheckAt)
    /\ <<h, Speaker(kind, n)>> \notin gone /\ UNCHANGED version
    /\ Become(Place([Now EXCEPT !.waiting = @ \cup {<<h, ops + 1>>}],
                    [OnGet(Begin(h), "device", kind, ops + 1, n) EXCEPT !.ops = @ + 1]),
              <<"DeviceAsks", h, n, kind>>)

\* OFF-1, LINK-10: a device says that it leaves; the connection stays.
DeviceLeaves(h, device) ==
    /\ Spend("leave") /\ h \in (IF device = 0 THEN AskAt ELSE CheckAt) /\ <<h, device>> \notin gone
    /\ UNCHANGED version
    /\ Become(Place([Now EXCEPT !.gone = @ \cup {<<h, device>>}], RefuseNeedingSession(Begin(h), device)),
              <<"DeviceLeaves", h, device>>)

\* AUTH-1, AUTH-26: it is back, by an entry of this hub, which knows its role or asks for it first.
DeviceReturns(h, device) ==
    LET next == IF device = 0 THEN [Now EXCEPT !.gone = @ \ {<<h, device>>}]
                ELSE Place([Now EXCEPT !.waiting = @ \cup {<<h, ops + 1>>}],
                           [OnGet(Begin(h), "device", "admit", ops + 1, device) EXCEPT !.ops = @ + 1])
        waits(q) == q.kind = "admit" /\ q.node = device
    IN /\ <<h, device>> \in gone /\ SelectSeq(hub[h].pend, waits) = <<>> /\ UNCHANGED <<version, left>>
       /\ Become(next, <<"DeviceReturns", h, device>>)

\* PERM-16: the authority's policy changes for some nodes, or (default_role) for all.
PolicyChanges(nodes) ==
    LET hit == IF nodes = {} THEN Nodes ELSE nodes
        newer == [n \in Nodes |-> IF n \in hit THEN version[n] + 1 ELSE version[n]]
    IN /\ Spend("change") /\ version' = newer
       /\ Become(Place(Now, Invalidate(Begin(Authority), nodes, FALSE, newer, "")), <<"PolicyChanges", nodes>>)

OperatorInvalidates(h, nodes, refresh) ==
    /\ Spend("command") /\ h \in CommandAt /\ UNCHANGED version
    /\ Become(Place(Now, Invalidate(Begin(h), nodes, refresh, told[h], "")), <<"OperatorInvalidates", h, nodes, refresh>>)

Up(c) == hub[c].present \/ up[c] # <<>> \/ down[c] # <<>>

HubLinkDrops(c) ==
    LET cut == [Now EXCEPT !.up[c] = <<>>, !.down[c] = <<>>]
        child == Place(cut, LinkDown(Begin(c), "up"))
        parent == Place(child, LinkDown(Begin(ParentOf[c]), c))
    IN /\ Spend("drop") /\ c \in DropAt /\ Up(c) /\ UNCHANGED version
       /\ Become([parent EXCEPT !.up[c] = <<>>, !.down[c] = <<>>], <<"HubLinkDrops", c>>)

HubReconnects(c) ==
    /\ ~Up(c) /\ UNCHANGED <<version, left>>
    /\ Become([Now EXCEPT !.up[c] = <<[t |-> "join"]>>], <<"HubReconnects", c>>)

RequestTimesOut(h, i) ==
    LET q == hub[h].pend[i]
        t == [Begin(h) EXCEPT !.s.pend = SelectSeq(@, LAMBDA x : x # q)]
    IN /\ i <= Len(hub[h].pend) /\ Spend("late") /\ h \in TimeoutAt /\ UNCHANGED version
       /\ Become(Place(Now, Fail(t, q)), <<"RequestTimesOut", h, q.op>>)

FrameGoesUp(c) ==
    /\ up[c] # <<>> /\ UNCHANGED <<version, left>>
    /\ Become(Place([Now EXCEPT !.up[c] = Tail(@)], Handle(Begin(ParentOf[c]), c, Head(up[c]))), <<"FrameGoesUp", c>>)

FrameGoesDown(c) ==
    /\ down[c] # <<>> /\ UNCHANGED <<version, left>>
    /\ Become(Place([Now EXCEPT !.down[c] = Tail(@)], Handle(Begin(c), "up", Head(down[c]))), <<"FrameGoesDown", c>>)

Targets == {{}} \cup {{n} : n \in Nodes}

\* Every action stands by itself under quantifiers over constants, so that TLC's dump of the graph names it.
Next ==
    \/ \E c \in Below : FrameGoesUp(c) \/ FrameGoesDown(c) \/ HubLinkDrops(c) \/ HubReconnects(c)
    \/ \E h \in Hubs, n \in Nodes, kind \in {"get", "held"} : DeviceAsks(h, n, kind)
    \/ \E h \in Hubs, device \in {0} \cup Nodes : DeviceLeaves(h, device) \/ DeviceReturns(h, device)
    \/ \E nodes \in Targets : PolicyChanges(nodes)
    \/ \E h \in Hubs, nodes \in Targets, refresh \in Refreshing : OperatorInvalidates(h, nodes, refresh)
    \/ \E h \in Hubs, i \in 1 .. Asks + Checks + Leaves + Commands * Cardinality(Hubs) : RequestTimesOut(h, i)

Spec == Init /\ [][Next]_vars

\* What is left of a hub and of a queue without history: what the Python core can be compared with.
Plain(m) == [field \in DOMAIN m \ {"old", "news"} |-> m[field]]
PlainQueue(q) == [i \in DOMAIN q |-> Plain(q[i])]
PlainHub(s) == [s EXCEPT !.cache = [n \in Nodes |-> Plain(@[n])], !.pend = PlainQueue(@)]

---------------------------------------------------------------------------
\* What must hold

\* A hub that was told to forget caches nothing it asked for before, and nothing older than it was told of.
Fresh(v, old, known) == v >= known /\ ~old

InvalidatedPermsNotServed ==
    \A h \in Hubs \ {Authority}, n \in Nodes :
        LET c == hub[h].cache[n] IN c # Nothing => Fresh(c.ver, c.old, told[h][n])

\* Nor does anything like that decide a permission, or what a device is admitted as.
DecisionsAreFresh == [][
    \A i \in 1 .. Len(act'.log) :
        LET o == act'.log[i]
        IN o.m.kind \in {"held", "admit"} /\ o.m.code = "ok" /\ o.m.ver # 0 => Fresh(o.m.ver, o.m.old, told'[o.h][o.m.node])]_vars

\* Every answer was asked for, and is the first to its request.
NoAnswerWithoutRequest == [][\A i \in 1 .. Len(act'.log) : act'.log[i].due]_vars

\* A device that has left is told nothing but that it is back; what it had asked is refused in the step in which it leaves.
UnauthenticatedSeesOnlyRegisterAndAuth == [][
    \A i \in 1 .. Len(act'.log) :
        LET o == act'.log[i] IN o.m.kind = "admit" \/ <<o.h, Speaker(o.m.kind, o.m.node)>> \notin gone]_vars

\* A device's request is pending at the hub it asked, or answered.
AskedIsPending ==
    waiting = UNION {{<<h, hub[h].pend[i].op>> : i \in {i \in 1 .. Len(hub[h].pend) : hub[h].pend[i].asker = "device"}} : h \in Hubs}

Settled == \A c \in Below : up[c] = <<>> /\ down[c] = <<>> /\ hub[c].present

\* Once everything has arrived, no cache is older than the authority's policy. Not so with an authority below the
\* root: invalidations never go up.
SettledPermsAreCurrent ==
    Settled => \A h \in Hubs \ {Authority}, n \in Nodes : hub[h].cache[n].ver \in {0, version[n]}

SettledIsAnswered == Settled => \A h \in Hubs : hub[h].pend = <<>>
=============================================================================
