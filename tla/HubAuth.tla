------------------------------ MODULE HubAuth ------------------------------
(***************************************************************************)
(* Registration, authentication, presence and revocation in a tree of      *)
(* hubs.  The text follows reference/hubauth/core file by file: a step in   *)
(* the making is a record `t`, every handler takes one and returns one, and *)
(* the comments name the rules of spec/rules.toml that are decided there.   *)
(* README.md says what is left out; ABSTRACTION.md maps Python values to    *)
(* these variables.                                                        *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Hubs, Root,         \* names; the tree is given by ParentOf
    ParentOf,           \* [Hubs \ {Root} -> Hubs]
    NodeOf,             \* [Hubs -> node id]
    Authority,          \* the hub that hands out node ids
    HubPorts, Owner,    \* a child hub's ends of connections, and whose they are
    PlainHubs, PlainHabits,     \* hubs that know only the documents, and how they read them: PlainHub.tla
    Devices, Sockets,   \* device ids; a device's ends of connections
    Uses,               \* <<socket, hub, device>> that may occur
    Online,             \* <<socket, hub, device>>, registered one after the other before the behaviour starts
    FirstNode,          \* where allocation begins
    AfterRevoke,        \* whether a device is registered again only after a revoke, and registrations are confirmed
    TrackHubs,          \* whether directories list the hubs themselves, too
    Registers, Authentications, Offlines, SocketDrops, HubDrops, Restarts, Revokes, Timeouts,  \* how often
    Losses, Backups, Restores,  \* how often a hub loses all it had, is backed up, and begins again from its backup
    DropAt,             \* hubs whose link to the parent may drop
    NoticeLate,         \* whether a parent may notice a drop later than its child
    RestartAt, RevokeAt, TimeoutAt, LossAt, RestoreAt,
    Batch,              \* how many owed revokes a neighbouring hub is sent at once
    RevokeKinds,        \* subset of {"all", "one"}: an operator's revoke without and with a credential
    Probing,            \* whether devices without a session try other requests
    Recording,          \* whether `act` is kept: not for liveness, which TLC checks without a view
    Bug                 \* "" or the name of one deliberate mistake

Ours == Hubs \ PlainHubs
Plain == INSTANCE PlainHub

Children(h) == {c \in Hubs \ {Root} : ParentOf[c] = h}
Neighbours(h) == Children(h) \cup (IF h = Root THEN {} ELSE {"up"})
PortsOf(c) == {p \in HubPorts : Owner[p] = c}
LinksOf(h) == {p \in HubPorts : ParentOf[Owner[p]] = h} \cup Sockets
DeviceNodes == FirstNode .. FirstNode + Cardinality(Devices) - (IF Bug = "RenewAllocates" THEN 0 ELSE 1)
HubNodes == {NodeOf[h] : h \in Hubs}
Nodes == DeviceNodes \cup (IF TrackHubs THEN HubNodes ELSE {})

VARIABLES
    hub,        \* [Hubs -> state of one hub], see BlankHub
    uplink,     \* [Hubs \ {Root} -> the port its connection to the parent uses, or ""]
    up, down,   \* [Hubs \ {Root} -> frames in flight on that connection]
    given,      \* to whom credential 1, 2, ... was issued
    asked,      \* [Sockets -> requests not answered yet]
    got,        \* [Devices -> credentials the device was given]
    backup,     \* [RestoreAt -> what a hub would begin with again, had it stopped when it was backed up]
    revoked,    \* history: credentials that must be dead once everything has settled
    shaken,     \* history: whether a hub lost what it had, see Unshaken
    admitted,   \* history: [Devices -> hub and credential of the last admission, unless a replacement was asked for]
    left,       \* how often each kind of event may still happen
    act         \* history, hidden by the view: the last event, its parameters, everything it sent
vars == <<hub, uplink, up, down, given, asked, got, backup, revoked, shaken, admitted, left, act>>
View == <<hub, uplink, up, down, given, asked, got, backup, revoked, shaken, admitted, left>>

---------------------------------------------------------------------------
\* Values

Closed == [dev |-> "closed", node |-> 0]    \* the port is not connected to this hub
Idle == [dev |-> "", node |-> 0]            \* connected, without a session: LINK-1
NoEntry == [node |-> 0, cred |-> 0]
NoRoute == [dev |-> "", via |-> 0, on |-> FALSE]
Nowhere == [hub |-> "", cred |-> 0]
Unregistered == [node |-> 0, revoked |-> FALSE, confirmed |-> TRUE]

\* EXT-2: what a hub has written down has a name, drawn when it begins to write: its hub and a number.
Journal(h, n) == <<h, n>>
NoJournal == <<>>

NoDebts == [
    journal |-> NoJournal,          \* the neighbour's, when it was last here
    sent |-> 0, handled |-> 0,      \* the last numbers used towards a neighbour, and handled from it
    owed |-> {},                    \* [m, num] sent, and not acknowledged
    wait |-> <<>>,                  \* never sent, the longest owed first
    written |-> 0,                  \* the last number that the link which is up has carried
    batch |-> 0,                    \* the number that ends the batch which is not acknowledged, or 0
    said |-> {}]                    \* what a plain neighbour was told over the link that is up

BlankHub(h, life) == [
    journal   |-> Journal(h, life),
    present   |-> FALSE,                                    \* the parent has admitted this hub
    links     |-> [p \in LinksOf(h) |-> Closed],            \* sessions
    reg       |-> [d \in Devices |-> Unregistered],         \* the registry
    next      |-> FirstNode,                                \* the lowest node id never given out
    wl        |-> [d \in Devices |-> NoEntry],              \* the whitelist
    dir       |-> [n \in Nodes |-> NoRoute],                \* the directory
    home      |-> [d \in Devices |-> 0],                    \* the child hub that was last told of a registration
    pend      |-> <<>>,                                     \* requests asked of others, oldest first
    fences    |-> {},                                       \* <<link, number>> not answered yet
    dismissed |-> {},                                       \* <<link, node>>: orders to go, not answered yet
    nb        |-> [k \in Neighbours(h) |-> NoDebts]]

Fold(op(_, _), base, seq) ==
    LET f[i \in 0 .. Len(seq)] == IF i = 0 THEN base ELSE op(f[i - 1], seq[i]) IN f[Len(seq)]

FoldSet(op(_, _), base, set) ==
    LET f[s \in SUBSET set] == IF s = {} THEN base ELSE LET x == CHOOSE x \in s : TRUE IN op(f[s \ {x}], x) IN f[set]

Sorted(set) ==
    LET f[s \in SUBSET set] ==
            IF s = {} THEN <<>> ELSE LET x == CHOOSE x \in s : \A y \in s : x <= y IN <<x>> \o f[s \ {x}]
    IN f[set]

Route(s, n) == IF n \in Nodes THEN s.dir[n] ELSE NoRoute
PortOfNode(s, n) ==     \* where a device or a child hub has its session, or ""
    LET found == {p \in DOMAIN s.links : s.links[p].node = n} IN IF found = {} THEN "" ELSE CHOOSE p \in found : TRUE
NeighbourAt(link) == IF link = "up" THEN "up" ELSE Owner[link]

\* EXT-1: whether a neighbour speaks only the documents; the link of one.
IsPlain(h, key) == IF key = "up" THEN h # Root /\ ParentOf[h] \in PlainHubs ELSE key \in PlainHubs
PlainLink(h, link) == link \notin Sockets \cup {""} /\ IsPlain(h, NeighbourAt(link))

---------------------------------------------------------------------------
\* A step in the making: what talk.py and transition.py do

Begin(h, s, number) ==
    [h |-> h, s |-> s, out |-> <<>>, fresh |-> number, issued |-> "", renewed |-> FALSE, dead |-> {}, bound |-> <<>>,
     lost |-> {},   \* devices about which a revoke is kept for nobody, though a hub is away
     asks |-> {}]   \* the request of a neighbouring hub that this step begins with, as <<link, op>>

Emit(t, link, m) == [t EXCEPT !.out = Append(@, [to |-> link, m |-> m])]
ToParent(t, m) == IF t.s.present THEN Emit(t, "up", m) ELSE t

---------------------------------------------------------------------------
\* owed.py

LiveLink(s, h, key) == IF key = "up" THEN (IF s.present THEN "up" ELSE "") ELSE PortOfNode(s, NodeOf[key])

RevokeFrame(number, m) == [t |-> "rev", seq |-> number, dev |-> m.dev, node |-> m.node, cred |-> m.cred]
Fence(number) == [t |-> "hub_fence", num |-> number]
First(seq, n) == SubSeq(seq, 1, IF n < Len(seq) THEN n ELSE Len(seq))

\* EXT-10: what has a number, and has not been sent again over the link that is up.
SentBefore(nb) == Sorted({o.num : o \in {o \in nb.owed : o.num > nb.written}})

\* EXT-10, EXT-11: send again what has these numbers, then these messages of those that wait, and a fence behind them.
Write(t, key, link, numbers, messages) ==
    LET known == t.s.nb[key].owed
        again(u, n) == Emit(u, link, RevokeFrame(n, (CHOOSE o \in known : o.num = n).m))
        new(u, m) ==
            LET n == u.s.nb[key].sent + 1
            IN [Emit(u, link, RevokeFrame(n, m)) EXCEPT
                    !.s.nb[key].sent = n,
                    !.s.nb[key].owed = @ \cup {[m |-> m, num |-> n]},
                    !.s.nb[key].wait = SelectSeq(@, LAMBDA x : x # m)]
        told == Fold(new, Fold(again, t, numbers), messages)
        last == IF messages # <<>> THEN told.s.nb[key].sent ELSE numbers[Len(numbers)]
    IN IF numbers = <<>> /\ messages = <<>> THEN t
       ELSE [Emit(told, link, Fence(last)) EXCEPT !.s.fences = @ \cup {<<link, last>>}, !.s.nb[key].written = last]

\* REV-21: what has waited longest, as much as goes at once.
NextBatch(t, key, link) ==
    LET nb == t.s.nb[key]
        numbers == First(SentBefore(nb), Batch)
        messages == First(nb.wait, Batch - Len(numbers))
        told == Write(t, key, link, numbers, messages)
    IN [told EXCEPT !.s.nb[key].batch = IF numbers = <<>> /\ messages = <<>> THEN 0 ELSE told.s.nb[key].written]

\* FRAME-25: a request of a plain hub that nobody waits for any more. Its answer may have no MsgID.
IsGhost(q) == q.asker = "" /\ q.kind # "confirm"

\* REV-23: a plain hub cannot tell a revoke that is repeated from a new one, so it is told once. A child hub that is away
\* gets no credential meanwhile, so it is told when it returns; a parent does, so it is told only what names one.
TellOnce(t, key, link, m) ==
    LET before(q) == IsGhost(q) /\ q.asked = link /\ q.dev = m.dev
    IN [Emit(t, link, RevokeFrame(0, m)) EXCEPT
            !.s.nb[key].said = @ \cup {m},
            !.s.pend = [i \in DOMAIN @ |-> IF before(@[i]) THEN [@[i] EXCEPT !.ended = TRUE] ELSE @[i]],
            !.s.nb[key].wait = IF Bug = "PlainSentAgain" THEN Append(@, m) ELSE @]

OwePlainly(t, key, m) ==
    LET link == LiveLink(t.s, t.h, key)
        keeps == IF key = "up" THEN m.cred # 0 ELSE Bug # "PlainNotKept"
    IN IF link # "" THEN TellOnce(t, key, link, m)
       ELSE IF ~keeps THEN (IF key = "up" THEN [t EXCEPT !.lost = @ \cup {m.dev}] ELSE t)
       ELSE IF \E i \in 1 .. Len(t.s.nb[key].wait) : t.s.nb[key].wait[i] = m THEN t
       ELSE [t EXCEPT !.s.nb[key].wait = Append(@, m)]

WelcomePlainly(t, key) ==
    LET link == LiveLink(t.s, t.h, key)
        emptied == [t EXCEPT !.s.nb[key].wait = <<>>]
    IN Fold(LAMBDA u, m : TellOnce(u, key, link, m), emptied, t.s.nb[key].wait)

\* EXT-12, REV-21: at once if nothing is before it, else when its turn comes; what waits already keeps its place.
Owe(t, key, m) ==
    LET nb == [t.s.nb[key] EXCEPT !.owed = {o \in @ : o.m # m}]
        link == LiveLink(t.s, t.h, key)
        waiting == [t EXCEPT !.s.nb[key] = [nb EXCEPT !.wait = Append(@, m)]]
        free == nb.wait = <<>> /\ SentBefore(nb) = <<>> /\ Cardinality(nb.owed) < Batch
    IN IF IsPlain(t.h, key) THEN OwePlainly(t, key, m)
       \* It has never been here, as far as this hub remembers.
       ELSE IF link = "" /\ key # "up" /\ t.s.nb[key].journal = NoJournal THEN [t EXCEPT !.lost = @ \cup {m.dev}]
       ELSE IF link = "" /\ Bug = "NothingOwed" THEN t
       ELSE IF \E i \in 1 .. Len(nb.wait) : nb.wait[i] = m THEN t
       ELSE IF link # "" /\ free THEN Write(waiting, key, link, <<>>, <<m>>)
       ELSE waiting

\* REV-22: before a neighbour hears of a device, what it is owed about this device.
SendFirst(t, link, dev) ==
    LET key == NeighbourAt(link)
        nb == t.s.nb[key]
        about == SelectSeq(nb.wait, LAMBDA m : m.dev = dev)
        sent == {o \in nb.owed : o.num > nb.written /\ o.m.dev = dev}
    IN IF link \in Sockets \/ PlainLink(t.h, link) THEN t
       ELSE IF LiveLink(t.s, t.h, key) # link \/ (about = <<>> /\ sent = {}) THEN t
       ELSE Write(t, key, link, IF Bug = "NumbersOvertake" THEN <<>> ELSE SentBefore(nb), about)

\* EXT-12, REV-21: everything up to the fence has been handled at the other end.
OnFenceAnswer(t, link, f) ==
    LET key == NeighbourAt(link)
        settled == [t EXCEPT !.s.fences = @ \ {<<link, f.num>>}, !.s.nb[key].owed = {o \in @ : o.num > f.num}]
    IN IF <<link, f.num>> \notin t.s.fences THEN t
       ELSE IF f.num < t.s.nb[key].batch \/ Bug = "OneBatch" THEN settled
       ELSE NextBatch(settled, key, link)

\* EXT-12, REV-21: a neighbouring hub is back; before anything else, the first batch of what it has not acknowledged.
Welcome(t, key) ==
    NextBatch([t EXCEPT !.s.nb[key].written = 0, !.s.nb[key].batch = 0], key, LiveLink(t.s, t.h, key))

\* What a hub says of itself at the join, to the neighbour whose journal it says it knows.
Ext(s, key, peer) == [journal |-> s.journal, peer |-> peer, handled |-> s.nb[key].handled]

\* EXT-5, EXT-6: a neighbour has said which journal it writes. Another one begins at 0, and so do the numbers towards
\* it; what it is owed waits again, but for what would end more than was meant at a former parent's. If it knows our journal,
\* it has handled our numbers so far, even if we were restored and do not remember that we used them.
Meet(t, key, ext) ==
    LET nb == t.s.nb[key]
        numbers == Sorted({o.num : o \in nb.owed})
        queue == [i \in 1 .. Len(numbers) |-> (CHOOSE o \in nb.owed : o.num = numbers[i]).m] \o nb.wait
        former == key = "up" /\ nb.journal # NoJournal /\ Bug # "FormerDebtsKept"
        begun == [NoDebts EXCEPT !.journal = ext.journal,
                                 !.wait = IF former THEN SelectSeq(queue, LAMBDA m : m.cred # 0) ELSE queue]
        kept == IF ext.journal = nb.journal \/ Bug = "JournalsIgnored" THEN [nb EXCEPT !.journal = ext.journal] ELSE begun
        counts == /\ ext.peer = t.s.journal /\ Bug # "NumbersReused"
                  /\ Bug # "RaisedIfKnown" \/ ext.journal = nb.journal
    IN [t EXCEPT !.s.nb[key] = IF counts /\ ext.handled > kept.sent THEN [kept EXCEPT !.sent = ext.handled] ELSE kept]

---------------------------------------------------------------------------
\* talk.py

\* FRAME-12, FRAME-14: answer whoever waits for a pending request, if it is still there.
Settle(t, q, code, node, cred) ==
    IF q.asker = "" \/ (q.asker # "up" /\ t.s.links[q.asker] = Closed) THEN t
    ELSE Emit(IF code # "ok" \/ Bug = "AnswersOvertake" THEN t ELSE SendFirst(t, q.asker, q.dev), q.asker,
              [t |-> IF q.kind \in {"reg", "relayReg"} THEN "regAns" ELSE "authAns",
               op |-> q.op, code |-> code, dev |-> q.dev, node |-> node, cred |-> cred])

Refuse(t, q, code) == Settle(t, q, code, 0, 0)

\* FRAME-15, TIME-1: ask a neighbour and remember for whom.
Ask(t, m, q) ==
    LET told == IF Bug = "SearchesOvertake" THEN t ELSE SendFirst(t, q.asked, q.dev)
    IN [Emit(told, q.asked, m) EXCEPT !.s.pend = Append(@, q)]

Query(kind, op, asked_, asker, dev, cred) ==
    [kind |-> kind, op |-> op, asked |-> asked_, asker |-> asker, dev |-> dev, cred |-> cred,
     climbs |-> FALSE, missed |-> FALSE,   \* searches: the parent is next; a hub could not be asked
     ended |-> FALSE]                      \* given up: a revoke about the device has followed it

---------------------------------------------------------------------------
\* search.py

SearchFrame(q, cred) == [t |-> "auth", op |-> q.op, dev |-> q.dev, cred |-> cred]

\* AUTH-9, AUTH-10: the parent is asked, or nobody is left.
Climb(t, q, cred) ==
    IF q.asker = "up" \/ t.h = Root THEN Refuse(t, q, IF q.missed THEN "away" ELSE "no")
    ELSE IF ~t.s.present THEN Refuse(t, q, "away")
    ELSE Ask(t, SearchFrame(q, cred), [q EXCEPT !.asked = "up"])

\* AUTH-20: the child hub it is online through, else its home, else where it was last seen.
LikelyChild(s, dev) ==
    LET seen == {n \in Nodes : s.dir[n].dev = dev}
        n == CHOOSE n \in seen : TRUE
        via == IF seen # {} /\ s.dir[n].via # n THEN s.dir[n].via ELSE 0
        online == via # 0 /\ s.dir[n].on
    IN IF online \/ s.home[dev] = 0 THEN via ELSE s.home[dev]

\* AUTH-5, AUTH-20, AUTH-22: somebody without an entry searches, on behalf of a device or of another hub.
Search(t, q, cred) ==
    LET child == LikelyChild(t.s, q.dev)
        link == IF child = 0 THEN "" ELSE PortOfNode(t.s, child)
        climbs == q.asker # "up" /\ t.h # Root /\ Bug # "OneLeg"
        kept == IF climbs \/ q.kind = "auth" \/ Bug = "RelayKeepsCredential" THEN cred ELSE 0
    IN IF child = 0 \/ link = q.asker THEN Climb(t, q, cred)
       ELSE IF link = "" THEN (IF Bug = "OneLeg" THEN Refuse(t, q, "away") ELSE Climb(t, [q EXCEPT !.missed = TRUE], cred))
       ELSE Ask(t, SearchFrame(q, cred), [q EXCEPT !.asked = link, !.climbs = climbs, !.cred = kept])

\* AUTH-21: the child hub that was asked has not settled it.
GoOn(t, q, code) ==
    Climb(t, [q EXCEPT !.climbs = FALSE, !.missed = @ \/ code # "no", !.cred = IF q.kind = "auth" THEN @ ELSE 0], q.cred)

\* A search has failed, for good or so far.
SearchFails(t, q, code) ==
    LET forgets == Bug = "RefusedIsForgotten" /\ q.kind = "reg" /\ \A p \in Sockets : t.s.links[p].dev # q.dev
    IN IF q.climbs THEN GoOn(t, q, code)
       ELSE Refuse(IF forgets THEN [t EXCEPT !.s.wl[q.dev] = NoEntry] ELSE t, q, IF q.missed /\ code = "no" THEN "away" ELSE code)

\* REG-15: a child hub is told of the success of a registration.
RememberHome(t, link, dev) ==
    IF link = "up" \/ t.s.links[link].node = 0 THEN t
    ELSE IF Bug = "FirstHomeStays" /\ t.s.home[dev] # 0 THEN t
    ELSE [t EXCEPT !.s.home[dev] = t.s.links[link].node]

---------------------------------------------------------------------------
\* presence.py and offline.py

MarkOffline(t, n) == [t EXCEPT !.s.dir[n].on = FALSE]

\* OFF-5; nobody awaits the answer (OFF-9), so it is not modelled.
ReportOffline(t, n) == ToParent(t, [t |-> "off", dev |-> t.s.dir[n].dev, node |-> n])

\* EXT-8
Announce(t, n) == IF IsPlain(t.h, "up") THEN t ELSE ToParent(t, [t |-> "hub_online", dev |-> t.s.dir[n].dev, node |-> n])

\* FRAME-25: nobody waits for these requests any more. What a plain hub was asked is remembered until it answers: its
\* answer may have no MsgID, and must not be taken for that to a later request.
Forget(t, doomed(_)) ==
    LET ghost(q) == Query(IF q.kind \in {"reg", "relayReg"} THEN "reg" ELSE "auth", q.op, q.asked, "", q.dev, 0)
        unheard == [i \in 1 .. Len(t.s.pend) |->
            IF doomed(t.s.pend[i]) /\ PlainLink(t.h, t.s.pend[i].asked) /\ Bug # "PlainForgotten"
            THEN ghost(t.s.pend[i]) ELSE t.s.pend[i]]
    IN [t EXCEPT !.s.pend = SelectSeq(unheard, LAMBDA q : ~doomed(q))]

\* LINK-7
ForgetAsker(t, link) == Forget(t, LAMBDA q : q.asker = link)

\* LINK-6
FailAsked(t, link) ==
    LET lost == SelectSeq(t.s.pend, LAMBDA q : q.asked = link)
        rest == [t EXCEPT !.s.pend = SelectSeq(@, LAMBDA q : q.asked # link),
                          !.s.fences = {f \in @ : f[1] # link},
                          !.s.dismissed = {x \in @ : x[1] # link},
                          !.s.nb[NeighbourAt(link)].written = 0, !.s.nb[NeighbourAt(link)].batch = 0,
                          !.s.nb[NeighbourAt(link)].said = {}]
    IN IF Bug = "LossUnanswered" THEN [rest EXCEPT !.s.pend = t.s.pend]
       ELSE IF Bug = "PendingForgotten" THEN rest
       ELSE Fold(LAMBDA u, q : SearchFails(u, q, "away"), rest, lost)

\* OFF-8: everything behind a lost child hub is offline.
LoseHub(t, link) ==
    LET hubNode == t.s.links[link].node
        behind == {n \in Nodes : n # hubNode /\ t.s.dir[n].on /\ t.s.dir[n].via = hubNode}
        quiet == IF Bug = "LossKeepsRoutes" THEN {} ELSE behind
    IN FailAsked(Fold(LAMBDA u, n : ReportOffline(MarkOffline(u, n), n), t, Sorted(quiet)), link)

\* OFF-1, OFF-4, OFF-5, REV-6
EndSession(t, link, report) ==
    LET n == t.s.links[link].node
        freed == [IF link \in HubPorts THEN LoseHub(t, link) ELSE t EXCEPT !.s.links[link] = Idle]
        route == Route(freed.s, n)
    IN IF ~(route.on /\ route.via = n) THEN freed
       ELSE IF report THEN ReportOffline(MarkOffline(freed, n), n) ELSE MarkOffline(freed, n)

CloseLink(t, link) == [ForgetAsker(t, link) EXCEPT !.s.links[link] = Closed]

\* BIND-3, BIND-4, BIND-8, LINK-11: this session is superseded; nothing is reported.
Displace(t, link) == CloseLink(EndSession(t, link, FALSE), link)

\* EXT-9: order a child hub to let go of a node.
Dismiss(t, hubNode, n) ==
    LET link == PortOfNode(t.s, hubNode)
    IN IF link = "" \/ PlainLink(t.h, link) \/ Bug = "NoDismissal" THEN t
       ELSE [Emit(t, link, [t |-> "hub_dismiss", dev |-> t.s.dir[n].dev, node |-> n])
                EXCEPT !.s.dismissed = @ \cup {<<link, n>>}]

PointAt(t, n, dev, via) ==
    LET old == t.s.dir[n]
    IN [IF old.on /\ old.via \notin {via, n} THEN Dismiss(t, old.via, n) ELSE t
            EXCEPT !.s.dir[n] = [dev |-> dev, via |-> via, on |-> TRUE]]

\* BIND-1, BIND-2, BIND-3
Bind(t, link, dev, n) ==
    LET former == t.s.links[link]
        ready == IF former.node \notin {0, n} THEN EndSession(t, link, TRUE) ELSE t
        other == PortOfNode(ready.s, n)
        alone == IF other \notin {"", link} THEN Displace(ready, other) ELSE ready
        here == IF n \in Nodes THEN PointAt(alone, n, dev, n) ELSE alone
        bound == [here EXCEPT !.s.links[link] = [dev |-> dev, node |-> n]]
    IN IF n \in Nodes THEN Announce(bound, n) ELSE bound

\* BIND-6, BIND-8, BIND-9, BIND-10: a child hub says that a node is with it. EXT-8: nobody is answered.
OnAnnouncement(t, link, m) ==
    LET sender == t.s.links[link].node
        own == PortOfNode(t.s, m.node)
        alone == IF own # "" THEN Displace(t, own) ELSE t
        known == IF m.dev \in Devices THEN t.s.reg[m.dev].node ELSE 0
        heard == IF Bug = "AnnouncementConfirms" /\ m.dev \in Devices /\ known = m.node
                 THEN [alone EXCEPT !.s.reg[m.dev].confirmed = TRUE] ELSE alone
        passed == Announce(PointAt(heard, m.node, m.dev, sender), m.node)
    IN IF known \notin {0, m.node} \/ m.node \in {NodeOf[t.h], sender} THEN t
       ELSE IF /\ <<link, m.node>> \in t.s.dismissed /\ Bug # "OldAnnouncements"
               /\ Bug # "DismissedIfOnline" \/ t.s.dir[m.node].on THEN t
       ELSE IF Bug = "AnnouncementsAnswered"
       THEN Emit(passed, link, [t |-> "authAns", op |-> 1, code |-> "no", dev |-> m.dev, node |-> 0, cred |-> 0])
       ELSE passed

\* A device is behind a plain child hub that is told so; nothing else says where its devices are.
Locate(t, link, dev, n) ==
    LET own == PortOfNode(t.s, n)
        alone == IF own # "" THEN Displace(t, own) ELSE t
    IN IF link = "up" \/ ~PlainLink(t.h, link) THEN t
       ELSE IF t.s.links[link].node = 0 THEN t
       ELSE Announce(PointAt(alone, n, dev, t.s.links[link].node), n)

\* A success for a device of another hub.
SettleFor(t, q, node, cred) == Settle(IF q.asker = "" THEN t ELSE Locate(t, q.asker, q.dev, node), q, "ok", node, cred)

\* OFF-6, OFF-7: a child hub reports that a node is gone.
OnReport(t, link, m) ==
    LET route == Route(t.s, m.node)
    IN IF route.on /\ (route.via = t.s.links[link].node \/ Bug = "LateOfflineErases")
       THEN ReportOffline(MarkOffline(t, m.node), m.node)
       ELSE t

\* BIND-12: the parent says that a node of ours is elsewhere now.
OnOrder(t, m) ==
    LET route == Route(t.s, m.node)
        own == PortOfNode(t.s, m.node)
        gone == IF own # "" THEN Displace(t, own) ELSE MarkOffline(Dismiss(t, route.via, m.node), m.node)
    IN IF Bug = "OrderReannounces" /\ own # "" THEN Announce(Emit(t, "up", [t |-> "dismissAns", node |-> m.node]), m.node)
       ELSE Emit(IF route.on THEN gone ELSE t, "up", [t |-> "dismissAns", node |-> m.node])

\* BIND-11: own sessions first, then child hub by child hub.
AnnounceAll(t) ==
    LET online(via) == {n \in Nodes : t.s.dir[n].on /\ (IF via = 0 THEN t.s.dir[n].via = n
                                                      ELSE t.s.dir[n].via = via /\ n # via)}
        each(u, via) == Fold(Announce, u, Sorted(online(via)))
    IN IF Bug = "SilentReturn" THEN t ELSE Fold(each, t, Sorted({0} \cup HubNodes))

---------------------------------------------------------------------------
\* revoke.py

\* REV-11: an answer sent just before the revoke must not let the device back in.
CancelAuthentications(t, m) ==
    LET named(q) == q.dev = m.dev /\ (m.cred \in {0, q.cred} \/ Bug = "OneRevokesAll")
        \* A plain hub refuses nothing by itself: a success that was on its way here goes no further.
        relayed(q) == /\ q.kind = "relayAuth" /\ q.dev = m.dev /\ PlainLink(t.h, q.asker)
                      /\ m.cred = 0 \/ q.cred \in {0, m.cred}
        doomed(q) == /\ ~IsGhost(q)
                     /\ (q.kind \in {"auth", "confirm"} /\ named(q)) \/ (relayed(q) /\ Bug # "PlainRelayed")
        refused == Fold(LAMBDA u, q : Refuse(u, q, "no"), t, SelectSeq(t.s.pend, doomed))
    IN CASE Bug = "RevokeCancelsNothing" -> t
         [] Bug = "CancelKeepsPending" -> refused
         [] OTHER -> Forget(refused, doomed)

\* REV-5, REV-6, REV-7, REV-8, REV-9, REV-12
RevokeHere(t, m, registering) ==
    LET entry == t.s.wl[m.dev]
        agrees == /\ entry.node # 0 /\ m.node \in {0, entry.node}
                  /\ m.cred \in {0, entry.cred} \/ Bug = "OneRevokesAll"
        known == t.s.reg[m.dev].node
        noted == AfterRevoke /\ known # 0 /\ (agrees \/ (m.cred = 0 /\ m.node \in {0, known}))
        cancelled == IF Bug = "CancelsForStrangers" /\ entry.node # 0 THEN t ELSE CancelAuthentications(t, m)
        c == IF noted THEN [cancelled EXCEPT !.s.reg[m.dev].revoked = TRUE] ELSE cancelled
        deleted == [c EXCEPT !.s.wl[m.dev] = NoEntry,
                             \* What a registration's revoke, or one that names a credential, may kill was settled when
                             \* it was issued. An operator's revoke of everything means what it finds on its way.
                             !.dead = IF m.node = 0 /\ m.cred = 0 THEN @ \cup {entry.cred} ELSE @]
        link == PortOfNode(deleted.s, entry.node)
        ended == EndSession(deleted, link, TRUE)
        awaited == \E i \in 1 .. Len(ended.s.pend) :
            /\ ended.s.pend[i].kind = "reg" /\ ended.s.pend[i].asker = link
            /\ Bug # "SparesItsOwn" \/ ended.s.pend[i].dev = m.dev
        kept == IF ~agrees THEN c
                ELSE IF link = "" \/ Bug = "RevokeKeepsSession" THEN deleted
                ELSE IF link = registering \/ awaited THEN ended
                ELSE CloseLink(ended, link)
    IN IF Bug = "RevokeUnregisters" THEN [kept EXCEPT !.s.reg[m.dev] = Unregistered] ELSE kept

\* REV-2, EXT-10, EXT-11, EXT-12: to every neighbouring hub but the sender, now or when it returns.
PassRevokeOn(t, m, sender) ==
    LET told == FoldSet(LAMBDA u, key : Owe(u, key, m), t, DOMAIN t.s.nb \ {sender})
        bound == {p \in Sockets : told.s.links[p].node # 0}
    IN IF Bug = "RevokeToAll" THEN FoldSet(LAMBDA u, p : Emit(u, p, RevokeFrame(0, m)), told, bound) ELSE told

OnRevoke(t, link, f) ==
    LET key == NeighbourAt(link)
        m == [dev |-> f.dev, node |-> f.node, cred |-> f.cred]
        noted == [t EXCEPT !.s.nb[key].handled = f.seq]
        obeyed == PassRevokeOn(RevokeHere(noted, m, ""), m, key)
    IN IF IsPlain(t.h, key)
       THEN \* REV-24: always, but for the echo of what it was told.
            IF m \in t.s.nb[key].said /\ Bug # "EchoObeyed"
            THEN [t EXCEPT !.lost = @ \cup {m.dev}]
            ELSE LET done == PassRevokeOn(RevokeHere(t, m, ""), m, key)
                 IN IF Bug = "EchoObeyed" /\ m \in t.s.nb[key].said THEN [done EXCEPT !.dead = t.dead] ELSE done
       ELSE IF f.seq > t.s.nb[key].handled THEN obeyed
       ELSE IF Bug # "RevokeUnnumbered" THEN t   \* EXT-10
       ELSE [obeyed EXCEPT !.dead = t.dead]      \* what it kills the second time, nobody meant

---------------------------------------------------------------------------
\* authenticate.py

\* REG-6, AUTH-12, AUTH-1: store, bind and answer; the only way into a session.
Admit(t, q, node, cred) ==
    LET stored == [t EXCEPT !.s.wl[q.dev] = [node |-> node, cred |-> cred], !.bound = <<q.dev, cred>>]
    IN Settle(Bind(stored, q.asker, q.dev, node), q, "ok", node, cred)

\* AUTH-1, AUTH-2, AUTH-18: a device presents itself.
OnAuthenticate(t, link, op, dev, cred) ==
    LET entry == t.s.wl[dev]
        q == Query("auth", op, "", link, dev, cred)
    IN IF entry.node = 0 THEN Search(t, q, cred)
       ELSE IF entry.cred = cred THEN Admit(t, q, entry.node, cred)
       ELSE Refuse(t, q, "no")

\* AUTH-7, REG-8: another hub searches; what is relayed leaves no credential behind.
OnAssistAuthenticate(t, link, m) ==
    LET entry == t.s.wl[m.dev]
        q == Query("relayAuth", m.op, "", link, m.dev, 0)
    IN IF m.cred = 0 THEN Refuse(t, q, "no")    \* EXT-14
       ELSE IF entry.node = 0 THEN Search(t, q, m.cred)
       ELSE IF entry.cred = m.cred THEN SettleFor(t, q, entry.node, entry.cred)
       ELSE Refuse(t, q, "no")

---------------------------------------------------------------------------
\* register.py and authority.py

\* AUTHY-1, AUTHY-2, AUTHY-5, AUTHY-6: the link towards the authority, or "".
AuthorityHop(s, h, from) ==
    LET route == Route(s, NodeOf[Authority])
        above == IF s.present THEN "up" ELSE ""
        way == IF TrackHubs /\ route.on THEN PortOfNode(s, route.via) ELSE above
    IN IF way = from THEN "" ELSE way

\* AUTHY-3, AUTHY-4
Allocates(t, relayed) == t.h = Authority \/ (Bug = "AskedHubAllocates" /\ relayed)

\* REG-11
IsProtected(t, dev) ==
    LET reg == t.s.reg[dev] IN AfterRevoke /\ reg.node # 0 /\ reg.confirmed /\ ~reg.revoked

\* REG-1, REG-2, REG-9, REG-10, REG-16: a node id and, for a device that had one, first the end of all its credentials.
Issue(t, dev, registering, relayed) ==
    LET known == t.s.reg[dev].node
        again == Bug = "RenewAllocates"
        node == IF known = 0 \/ again THEN t.s.next ELSE known
        reg == [node |-> node, revoked |-> FALSE, confirmed |-> ~(AfterRevoke /\ relayed) \/ Bug = "UnconfirmedKept"]
        bound == [t EXCEPT !.issued = dev, !.renewed = known # 0,
                           !.s.next = IF known = 0 \/ again THEN @ + 1 ELSE @,
                           !.s.reg[dev] = IF Bug = "RegistryKeepsCredential" THEN reg @@ [cred |-> t.fresh] ELSE reg]
        m == [dev |-> dev, node |-> known, cred |-> 0]
    IN IF known = 0 \/ Bug = "NoRevokeOnRenewal" THEN bound
       ELSE [PassRevokeOn(RevokeHere(bound, m, registering), m, "") EXCEPT !.s.reg[dev] = bound.s.reg[dev]]

\* REG-16: behind the answer, whoever has the credential now is asked to say so.
AskToConfirm(t, link, op, dev) ==
    IF t.s.reg[dev].confirmed \/ Bug = "AnnouncementConfirms" THEN t
    ELSE Ask(t, [t |-> "auth", op |-> op, dev |-> dev, cred |-> t.fresh], Query("confirm", op, link, "", dev, 0))

\* AUTHY-4, REG-5, REG-7, REG-8, REG-13: for a device of this hub (kind "reg") or of another (kind "relayReg").
OnRegister(t, link, kind, op, dev) ==
    LET q == Query(kind, op, "", link, dev, 0)
        way == AuthorityHop(t.s, t.h, link)
        issued == Issue(t, dev, link, kind = "relayReg")
        node == issued.s.reg[dev].node
        caught == IF Bug = "AuthorityKeepsEntry"
                  THEN [issued EXCEPT !.s.wl[dev] = [node |-> node, cred |-> t.fresh]] ELSE issued
        early == Settle(t, q, "ok", node, t.fresh)
    IN IF Allocates(t, kind = "relayReg")
       THEN IF IsProtected(t, dev) THEN Refuse(t, q, "no")
            ELSE IF kind = "reg" THEN Admit(issued, q, node, t.fresh)
            ELSE IF Bug = "AnswerBeforeRevoke" THEN Issue(RememberHome(early, link, dev), dev, link, TRUE)
            ELSE AskToConfirm(SettleFor(RememberHome(caught, link, dev), q, node, t.fresh), link, op, dev)
       ELSE IF way = "" THEN Refuse(t, q, "away")
       ELSE Ask(t, [t |-> "reg", op |-> op, dev |-> dev], [q EXCEPT !.asked = way])

\* FRAME-16, FRAME-25, AUTH-11, AUTH-19, REG-14: an answer goes on to whoever waits for it, or is dropped. A plain hub may leave
\* out the MsgID: then a failure means the only request that it agrees with, and a success the oldest: first of those that a
\* revoke has ended, then of those that somebody waits for.
OnAnswer(t, link, m) ==
    LET numbered == m.op # 0 \/ ~PlainLink(t.h, link)
        agrees(q) == IF numbered THEN q.op = m.op
                     ELSE m.dev \in {"", q.dev} /\ (m.code = "ok" /\ m.t = "authAns" /\ q.cred # 0 => q.cred = m.cred)
        match(q) == /\ q.asked = link /\ agrees(q)
                    /\ (m.t = "regAns") = (q.kind \in {"reg", "relayReg"})
        fits == {i \in 1 .. Len(t.s.pend) : match(t.s.pend[i])}
        rank(i) == IF ~IsGhost(t.s.pend[i]) THEN 1 ELSE IF t.s.pend[i].ended THEN 0 ELSE 2
        found == IF numbered \/ m.code = "ok" \/ Cardinality(fits) = 1 THEN fits ELSE {}
        i == CHOOSE i \in found : \A j \in found : rank(i) < rank(j) \/ (rank(i) = rank(j) /\ i <= j)
        q == t.s.pend[i]
        taken == [t EXCEPT !.s.pend = SubSeq(@, 1, i - 1) \o SubSeq(@, i + 1, Len(@))]
    IN IF found = {} THEN t
       ELSE IF IsGhost(q) THEN taken
       ELSE IF m.code # "ok" THEN SearchFails(taken, q, m.code)
       ELSE IF q.kind = "auth" /\ m.cred # q.cred THEN Refuse(taken, q, "away")
       ELSE CASE q.kind = "confirm" -> [taken EXCEPT !.s.reg[q.dev].confirmed = TRUE]  \* REG-17
              [] q.kind = "reg" -> Admit(taken, q, m.node, m.cred)
              [] q.kind = "auth" -> Admit(taken, q, m.node, q.cred)
              [] Bug = "RelayCaches" -> Settle([taken EXCEPT !.s.wl[q.dev] = [node |-> m.node, cred |-> m.cred]],
                                               q, "ok", m.node, m.cred)
              [] q.kind = "relayReg" -> SettleFor(RememberHome(taken, q.asker, q.dev), q, m.node, m.cred)
              [] OTHER -> SettleFor(taken, q, m.node, m.cred)

---------------------------------------------------------------------------
\* links.py

\* LINK-2, TRUST-1: a child hub authenticates like a device; its entry is provisioned and never revoked here.
\* EXT-3: the same step that binds it settles the journals and the numbers.
OnJoin(t, link, m) ==
    LET c == Owner[link]
        plain == Bind(t, link, c, NodeOf[c])
        bound == Meet(plain, c, m.ext)
    IN IF IsPlain(t.h, c) THEN WelcomePlainly(Emit(plain, link, [t |-> "joined"]), c)
       ELSE Welcome(Emit(bound, link, [t |-> "joined", ext |-> Ext(bound.s, c, m.ext.journal)]), c)

\* LINK-3, EXT-4
OnJoined(t, m) ==
    IF IsPlain(t.h, "up") THEN WelcomePlainly([t EXCEPT !.s.present = TRUE], "up")
    ELSE AnnounceAll(Welcome([Meet(t, "up", m.ext) EXCEPT !.s.present = TRUE], "up"))

\* OFF-4, OFF-8, LINK-6, LINK-7
LinkDown(t, link) ==
    IF link = "up" THEN ForgetAsker(FailAsked([t EXCEPT !.s.present = FALSE], "up"), "up")
    ELSE CloseLink(IF t.s.links[link].node # 0 THEN EndSession(t, link, TRUE) ELSE t, link)

\* step.py: one frame from a neighbouring hub
Handle(t, link, m) ==
    CASE m.t = "join" -> OnJoin(t, link, m)
      [] m.t = "joined" -> OnJoined(t, m)
      [] m.t = "reg" -> OnRegister([t EXCEPT !.asks = {<<link, m.op>>}], link, "relayReg", m.op, m.dev)
      [] m.t = "auth" -> OnAssistAuthenticate([t EXCEPT !.asks = {<<link, m.op>>}], link, m)
      [] m.t \in {"regAns", "authAns"} -> OnAnswer(t, link, m)
      [] m.t = "hub_online" -> OnAnnouncement(t, link, m)
      [] m.t = "off" -> OnReport(t, link, m)
      [] m.t = "hub_dismiss" -> OnOrder(t, m)
      [] m.t = "dismissAns" -> [t EXCEPT !.s.dismissed = @ \ {<<link, m.node>>}]
      [] m.t = "rev" -> OnRevoke(t, link, m)
      [] m.t = "hub_fence" -> IF Bug = "FencesUnanswered" THEN t ELSE Emit(t, link, [t |-> "fenceAns", num |-> m.num])  \* EXT-11
      [] m.t = "fenceAns" -> OnFenceAnswer(t, link, m)

\* A hub of either kind.
HandleAny(t, link, m) == IF t.h \in PlainHubs THEN Plain!Handle(t, link, m) ELSE Handle(t, link, m)
LinkDownAny(t, link) == IF t.h \in PlainHubs THEN Plain!LinkDown(t, link) ELSE LinkDown(t, link)
RevokeAny(t, m) == IF t.h \in PlainHubs THEN Plain!Revoke(t, "", m) ELSE PassRevokeOn(RevokeHere(t, m, ""), m, "")

---------------------------------------------------------------------------
\* The whole tree as one value `g`, so that one event can make several hubs step

Now == [hub |-> hub, uplink |-> uplink, up |-> up, down |-> down, given |-> given, asked |-> asked, got |-> got,
        backup |-> backup, revoked |-> revoked, shaken |-> shaken, admitted |-> admitted, log |-> <<>>]

IsAnswer(m) == m.t \in {"regAns", "authAns"}

\* Whether an answer was asked for, by a socket that still waits, or by a hub, now or earlier, and is the first.
Due(g, t, o) ==
    IF ~IsAnswer(o.m) \/ t.h \in PlainHubs THEN TRUE
    ELSE IF o.to \in Sockets THEN o.m.op \in g.asked[o.to]
    ELSE /\ \/ <<o.to, o.m.op>> \in t.asks
            \/ \E i \in 1 .. Len(g.hub[t.h].pend) :
                  g.hub[t.h].pend[i].asker = o.to /\ g.hub[t.h].pend[i].op = o.m.op
         /\ \A i \in 1 .. Len(g.log) :
               ~(g.log[i].from = t.h /\ g.log[i].to = o.to /\ IsAnswer(g.log[i].m) /\ g.log[i].m.op = o.m.op)

\* Send what a step wants sent. Devices read at once; what goes to a port that nobody holds is lost.
Place(g, t, before) ==
    LET logged(u, o) == [u EXCEPT !.log = Append(@, [from |-> t.h, to |-> o.to, m |-> o.m, due |-> Due(u, t, o),
                            bound |-> o.to \in Sockets /\ (before.links[o.to].node # 0 \/ t.s.links[o.to].node # 0)])]
        place(u, o) ==
            LET v == logged(u, o)
            IN CASE o.to = "up" -> IF v.uplink[t.h] = "" THEN v ELSE [v EXCEPT !.up[t.h] = Append(@, o.m)]
                 [] o.to \in HubPorts -> IF v.uplink[Owner[o.to]] # o.to THEN v
                                         ELSE [v EXCEPT !.down[Owner[o.to]] = Append(@, o.m)]
                 [] IsAnswer(o.m) -> [v EXCEPT !.asked[o.to] = @ \ {o.m.op},
                                               !.got[o.m.dev] = IF o.m.t = "regAns" /\ o.m.code = "ok"
                                                                THEN @ \cup {o.m.cred} ELSE @]
                 [] OTHER -> v
    IN Fold(place, g, t.out)

\* What a hub that lost what it had has brought back, or can no longer tell others, is not claimed to be dead: `spared`,
\* which is all that was issued before, until it is revoked again. `said`: whether an operator has revoked since.
Unshaken == [how |-> "", said |-> FALSE, spared |-> {}]

\* The root lost everything and no operator has revoked since: nobody means what was issued after that.
Former(g) == g.shaken.how = "lost" /\ LossAt = {Root} /\ ~g.shaken.said

\* Not every hub will hear of a revoke about these devices.
Spare(g, devices) ==
    IF devices = {} THEN g
    ELSE [g EXCEPT !.shaken = [how |-> IF @.how = "" THEN "unheard" ELSE @.how, said |-> FALSE,
                               spared |-> @.spared \cup {k \in 1 .. Len(g.given) : g.given[k] \in devices}]]

Finish(g, t) ==
    LET before == g.hub[t.h]
        sent == Place(g, t, before)
        closed == {p \in Sockets : before.links[p] # Closed /\ t.s.links[p] = Closed}
        \* A registration anew is meant to end every credential issued to the device before.
        older == {k \in 1 .. Len(g.given) : g.given[k] = t.issued}
        found == IF Former(g) THEN t.dead \cap g.shaken.spared ELSE t.dead
        dead == IF t.renewed THEN found \cup older ELSE found
        unsure == IF g.shaken.how # "" /\ ~g.shaken.said THEN found ELSE {}
        done == [sent EXCEPT !.hub[t.h] = t.s,
                             !.given = IF t.issued = "" THEN @ ELSE Append(@, t.issued),
                             !.asked = IF closed = {} THEN @ ELSE [p \in Sockets |-> IF p \in closed THEN {} ELSE @[p]],
                             !.revoked = @ \cup dead,
                             !.shaken.spared = (@ \cup unsure) \ (IF t.renewed THEN older ELSE {}),
                             !.admitted = IF t.bound # <<>> THEN [@ EXCEPT ![t.bound[1]] = [hub |-> t.h, cred |-> t.bound[2]]]
                                          ELSE @]
    IN Spare(done, t.lost)

Step(g, h) == Begin(h, g.hub[h], Len(g.given) + 1)

\* Events, as functions from tree to tree

Join(g, c, port) ==
    [g EXCEPT !.hub[ParentOf[c]].links[port] = Idle, !.uplink[c] = port,
              !.up[c] = <<IF c \in PlainHubs THEN [t |-> "join"]
                          ELSE [t |-> "join", ext |-> Ext(g.hub[c], "up", g.hub[c].nb["up"].journal)]>>]

\* What is in flight is lost, and to a plain hub or from it for good.
Cut(g, c) ==
    LET frames == g.up[c] \o g.down[c]
        revokes == {i \in 1 .. Len(frames) : frames[i].t = "rev"}
        unheard == IF c \in PlainHubs \/ ParentOf[c] \in PlainHubs THEN {frames[i].dev : i \in revokes} ELSE {}
    IN Spare([g EXCEPT !.uplink[c] = "", !.up[c] = <<>>, !.down[c] = <<>>], unheard)

ParentNotices(g, c, port) == Finish(g, LinkDownAny(Step(g, ParentOf[c]), port))
ChildNotices(g, c) == Finish(g, LinkDownAny(Step(g, c), "up"))

Connected(g, p, h) == IF g.hub[h].links[p] = Closed THEN [g EXCEPT !.hub[h].links[p] = Idle] ELSE g

Register(g, p, h, d, op) ==
    LET c == [Connected(g, p, h) EXCEPT !.asked[p] = @ \cup {op}, !.admitted[d] = Nowhere]
    IN Finish(c, IF h \in PlainHubs THEN Plain!Register(Step(c, h), p, op, d) ELSE OnRegister(Step(c, h), p, "reg", op, d))

Authenticate(g, p, h, d, cred, op) ==
    LET c == [Connected(g, p, h) EXCEPT !.asked[p] = @ \cup {op}]
    IN Finish(c, IF h \in PlainHubs THEN Plain!Authenticate(Step(c, h), p, op, d, cred)
                 ELSE OnAuthenticate(Step(c, h), p, op, d, cred))

\* What outlives a hub.
Lasting(h, s) ==
    LET links == {p \in LinksOf(h) : s.links[p] # Closed} \cup (IF h = Root THEN {} ELSE {"up"})
    IN FoldSet(LAMBDA t, link : LinkDown(t, link), Begin(h, s, 0), links).s

ReceiveUp(g, c) ==
    LET h == ParentOf[c]
        port == g.uplink[c]
        taken == [g EXCEPT !.up[c] = Tail(@)]
    IN Finish(taken, HandleAny(Step(g, h), port, Head(g.up[c])))

ReceiveDown(g, c) ==
    LET taken == [g EXCEPT !.down[c] = Tail(@)] IN Finish(taken, HandleAny(Step(g, c), "up", Head(g.down[c])))

RECURSIVE Drain(_)
Drain(g) ==
    LET above == {c \in Hubs \ {Root} : g.up[c] # <<>>}
        below == {c \in Hubs \ {Root} : g.down[c] # <<>>}
    IN IF above # {} THEN Drain(ReceiveUp(g, CHOOSE c \in above : TRUE))
       ELSE IF below # {} THEN Drain(ReceiveDown(g, CHOOSE c \in below : TRUE))
       ELSE g

---------------------------------------------------------------------------
\* The behaviours

Nobody == [hub |-> [h \in Hubs |-> IF h \in PlainHubs THEN Plain!Blank(LinksOf(h), Nodes) ELSE BlankHub(h, 1)],
           uplink |-> [c \in Hubs \ {Root} |-> ""],
           up |-> [c \in Hubs \ {Root} |-> <<>>], down |-> [c \in Hubs \ {Root} |-> <<>>], given |-> <<>>,
           asked |-> [p \in Sockets |-> {}], got |-> [d \in Devices |-> {}], revoked |-> {},
           backup |-> <<>>, shaken |-> Unshaken, admitted |-> [d \in Devices |-> Nowhere], log |-> <<>>]

\* All hubs have joined, parents first, and the devices of Online have registered.
Depth(c) == LET f[h \in Hubs] == IF h = Root THEN 0 ELSE f[ParentOf[h]] + 1 IN f[c]
Started ==
    LET byDepth == Sorted({Depth(c) : c \in Hubs \ {Root}})
        join(g, c) == Drain(Join(g, c, CHOOSE p \in PortsOf(c) : TRUE))
        joined == Fold(LAMBDA g, n : FoldSet(join, g, {c \in Hubs \ {Root} : Depth(c) = n}), Nobody, byDepth)
    IN Fold(LAMBDA g, o : Drain(Register(g, o[1], o[2], o[3], 0)), joined, Online)

\* The set of one makes TLC compute the tree once and not once per variable.
Become(next, event) ==
    \E g \in {next} :
        /\ hub' = g.hub /\ uplink' = g.uplink /\ up' = g.up /\ down' = g.down /\ given' = g.given
        /\ asked' = g.asked /\ got' = g.got /\ backup' = g.backup
        /\ revoked' = g.revoked /\ shaken' = g.shaken /\ admitted' = g.admitted
        /\ act' = IF Recording THEN [event |-> event, log |-> g.log] ELSE act

Spend(what) == left[what] > 0 /\ left' = [left EXCEPT ![what] = @ - 1]

Init ==
    /\ LET g == Started
       IN /\ hub = g.hub /\ uplink = g.uplink /\ up = g.up /\ down = g.down /\ given = g.given
          /\ asked = g.asked /\ got = g.got /\ revoked = g.revoked /\ shaken = g.shaken /\ admitted = g.admitted
          /\ backup = [h \in RestoreAt |-> Lasting(h, g.hub[h])]
    /\ left = [reg |-> Registers, auth |-> Authentications, off |-> Offlines, gone |-> SocketDrops,
               cut |-> HubDrops, restart |-> Restarts, rev |-> Revokes, late |-> Timeouts,
               lose |-> Losses, save |-> Backups, restore |-> Restores]
    /\ act = [event |-> <<"Init">>, log |-> <<>>]

\* A request is told apart by its number.
NextOp == (Registers - left.reg) + (Authentications - left.auth) + 1
MayUse(p, h) == \A other \in Hubs \ {h} : hub[other].links[p] = Closed

\* FRAME-10: a device registers, connecting first if it must.
DeviceRegisters(p, h, d) ==
    /\ Spend("reg") /\ MayUse(p, h)
    /\ Become(Register(Now, p, h, d, NextOp), <<"DeviceRegisters", p, h, d, NextOp>>)

\* AUTH-1: with any credential it was ever given or, to a plain hub that does not mind, with none.
DeviceAuthenticates(p, h, d, cred) ==
    /\ Spend("auth") /\ MayUse(p, h)
    /\ IF cred = 0 THEN h \in PlainHubs /\ "empty" \in PlainHabits ELSE cred \in got[d]
    /\ Become(Authenticate(Now, p, h, d, cred, NextOp), <<"DeviceAuthenticates", p, h, d, cred, NextOp>>)

\* What a hub takes for the devices, or the child hub, on a connection of its own.
SessionsOn(h, p) ==
    IF h \in Ours THEN {x \in {hub[h].links[p]} : x.node # 0}
    ELSE {[dev |-> hub[h].index[n].dev, node |-> n] : n \in {n \in Nodes : hub[h].index[n].at = p}}

\* OFF-1, OFF-2: a device says that it leaves; the connection stays.
DeviceLeaves(p, h) ==
    /\ Spend("off") /\ SessionsOn(h, p) # {}
    /\ LET n == (CHOOSE x \in SessionsOn(h, p) : TRUE).node
           t == Step(Now, h)
       IN Become(Finish(Now, IF h \in PlainHubs THEN Plain!Offline(t, n) ELSE EndSession(t, p, TRUE)),
                 <<"DeviceLeaves", p, h>>)

\* OFF-4
SocketBreaks(p, h) ==
    /\ Spend("gone") /\ hub[h].links[p] # Closed
    /\ Become(Finish(Now, LinkDownAny(Step(Now, h), p)), <<"SocketBreaks", p, h>>)

\* FRAME-23: without a session, anything but register and authenticate is refused. Changes nothing.
DeviceProbes(p, h) ==
    /\ Probing /\ hub[h].links[p] = Idle
    /\ UNCHANGED left
    /\ LET answer == [t |-> IF Bug = "ServesStrangers" THEN "perms" ELSE "refused"]
       IN Become(Finish(Now, Emit(Step(Now, h), p, answer)), <<"DeviceProbes", p, h>>)

\* A connection between hubs breaks, and both ends notice.
HubLinkDrops(c) ==
    /\ Spend("cut") /\ c \in DropAt /\ uplink[c] # ""
    /\ Become(ChildNotices(ParentNotices(Cut(Now, c), c, uplink[c]), c), <<"HubLinkDrops", c>>)

\* With NoticeLate: which end may notice later. MCTrees.tla has the other.
LateEnd == "parent"

\* The child notices first; to the parent the connection still looks alive.
HubLinkDropsSilently(c) ==
    /\ NoticeLate /\ LateEnd = "parent" /\ Spend("cut") /\ c \in DropAt /\ uplink[c] # ""
    /\ Become(ChildNotices(Cut(Now, c), c), <<"HubLinkDropsSilently", c>>)

Stale(port) == LET c == Owner[port] IN hub[ParentOf[c]].links[port] # Closed /\ uplink[c] # port

ParentNoticesLate(port) ==
    /\ NoticeLate /\ Stale(port) /\ UNCHANGED left
    /\ Become(ParentNotices(Now, Owner[port], port), <<"ParentNoticesLate", port>>)

\* The parent notices first; what the child says is lost.
HubLinkDropsUnseen(c) ==
    /\ NoticeLate /\ LateEnd = "child" /\ Spend("cut") /\ c \in DropAt /\ uplink[c] # "" /\ hub[c].present
    /\ Become(ParentNotices(Cut(Now, c), c, uplink[c]), <<"HubLinkDropsUnseen", c>>)

ChildNoticesLate(c) ==
    /\ uplink[c] = "" /\ hub[c].present /\ UNCHANGED left
    /\ Become(ChildNotices(Now, c), <<"ChildNoticesLate", c>>)

\* LINK-2
HubReconnects(c, port) ==
    /\ uplink[c] = "" /\ ~hub[c].present /\ hub[ParentOf[c]].links[port] = Closed /\ UNCHANGED left
    /\ Become(Join(Now, c, port), <<"HubReconnects", c, port>>)

\* A hub stops and begins again with what outlives it, which is what is left when every link of its own went down and
\* nobody heard a word of it; then the others notice.
Stopped(g, h) ==
    LET below == {c \in Children(h) : g.uplink[c] # ""}
        above == {c \in {h} \ {Root} : g.uplink[c] # ""}
        cut == FoldSet(Cut, g, below \cup above)
        silently(x, link) == Finish(x, [LinkDown(Step(x, h), link) EXCEPT !.out = <<>>])
        self == IF above = {} THEN cut ELSE silently(cut, "up")
        mine == {p \in LinksOf(h) : self.hub[h].links[p] # Closed}
        children == FoldSet(ChildNotices, FoldSet(silently, self, mine), below)
    IN IF above = {} THEN children ELSE ParentNotices(children, h, g.uplink[h])

HubRestarts(h) ==
    /\ h \in RestartAt /\ Spend("restart")
    /\ Become(Stopped(Now, h), <<"HubRestarts", h>>)

\* The same hub with other contents: nobody claims any more what it alone knew.
Replaced(h, s, how) ==
    LET g == Stopped(Now, h)
    IN [g EXCEPT !.hub[h] = s,
                 !.shaken = [how |-> how, said |-> FALSE, spared |-> 1 .. Len(g.given)],
                 !.admitted = [d \in Devices |-> IF @[d].hub = h THEN Nowhere ELSE @[d]]]

\* A hub has lost what it had written down, and begins anew.
HubBeginsAnew(h) ==
    /\ h \in LossAt /\ Spend("lose")
    /\ Become(Replaced(h, BlankHub(h, 2 + Losses - left.lose), "lost"), <<"HubBeginsAnew", h>>)

HubIsBackedUp(h) ==
    /\ h \in RestoreAt /\ Spend("save")
    /\ Become([Now EXCEPT !.backup[h] = Lasting(h, hub[h])], <<"HubIsBackedUp", h>>)

\* EXT-5: a hub begins again with what it had when it was backed up, or when the behaviour started.
HubIsRestored(h) ==
    /\ h \in RestoreAt /\ Spend("restore")
    /\ Become(Replaced(h, backup[h], "restored"), <<"HubIsRestored", h>>)

\* REV-2, REV-19: an operator revokes everything of a device, or one credential that it was given.
OperatorRevokes(h, d, cred) ==
    LET m == [dev |-> d, node |-> 0, cred |-> cred]
        stored == {hub[x].wl[d].cred : x \in Hubs} \ {0}
        meant == IF cred = 0 THEN stored ELSE {cred}
        \* EXT-6: a hub that does not know yet that its parent is another one will drop this, and say so.
        other(c) == hub[c].nb["up"].journal \notin {NoJournal, hub[ParentOf[c]].journal}
        unknown == {c \in Ours \ {Root} : ParentOf[c] \in Ours /\ other(c)}
        unconfirmed == IF cred = 0 /\ unknown # {} THEN meant ELSE {}
        told == RevokeAny(Step(Now, h), m)
        g == Finish(Now, told)
    IN /\ h \in RevokeAt /\ Spend("rev")
       /\ IF cred = 0 THEN "all" \in RevokeKinds ELSE "one" \in RevokeKinds /\ cred \in got[d]
       /\ Become(IF told.lost # {} THEN [g EXCEPT !.revoked = @ \cup meant]
                 ELSE [g EXCEPT !.revoked = @ \cup meant, !.shaken.said = g.shaken.how # "",
                                !.shaken.spared = (@ \ meant) \cup unconfirmed],
                 <<"OperatorRevokes", h, d, cred>>)

\* TIME-2
RequestTimesOut(h, i) ==
    LET q == hub[h].pend[i]
        t == Step(Now, h)
        forgotten == Forget(t, LAMBDA x : x = q)
    IN /\ h \in TimeoutAt /\ i <= Len(hub[h].pend) /\ ~IsGhost(q) /\ Spend("late")
       /\ Become(Finish(Now, Refuse(forgotten, q, "away")), <<"RequestTimesOut", h, q.op>>)

FrameGoesUp(c) ==
    /\ up[c] # <<>> /\ UNCHANGED left
    /\ Become(ReceiveUp(Now, c), <<"FrameGoesUp", c, Head(up[c])>>)

FrameGoesDown(c) ==
    /\ down[c] # <<>> /\ UNCHANGED left
    /\ Become(ReceiveDown(Now, c), <<"FrameGoesDown", c, Head(down[c])>>)

\* Every action stands by itself under quantifiers over constants, so that TLC's dump of the graph names it.
Issued == 1 .. Len(Online) + Registers
Next ==
    \/ \E c \in Hubs \ {Root} : FrameGoesUp(c) \/ FrameGoesDown(c)
    \/ \E use \in Uses : DeviceRegisters(use[1], use[2], use[3])
    \/ \E use \in Uses, cred \in {0} \cup Issued : DeviceAuthenticates(use[1], use[2], use[3], cred)
    \/ \E p \in Sockets, h \in Hubs : DeviceLeaves(p, h) \/ SocketBreaks(p, h) \/ DeviceProbes(p, h)
    \/ \E c \in Hubs \ {Root} : HubLinkDrops(c) \/ HubLinkDropsSilently(c) \/ HubLinkDropsUnseen(c) \/ ChildNoticesLate(c)
    \/ \E port \in HubPorts : ParentNoticesLate(port) \/ HubReconnects(Owner[port], port)
    \/ \E h \in Hubs : HubRestarts(h) \/ HubBeginsAnew(h) \/ HubIsBackedUp(h) \/ HubIsRestored(h)
    \/ \E h \in Hubs, d \in Devices, cred \in {0} \cup Issued : OperatorRevokes(h, d, cred)
    \/ \E h \in Hubs, i \in 1 .. Registers + Authentications : RequestTimesOut(h, i)

Spec == Init /\ [][Next]_vars

\* What must happen, happens: frames arrive, lost links return. This is weak fairness of the four actions, written out
\* with how their steps look from outside, because TLC takes minutes to compute what ENABLED means for the actions.
Arrives(now, then) == now # <<>> /\ then = Tail(now)
Fair ==
    /\ \A c \in Hubs \ {Root} :
        /\ []<>(up[c] = <<>>) \/ []<><<Arrives(up[c], up'[c]) /\ uplink'[c] = uplink[c]>>_vars
        /\ []<>(down[c] = <<>>) \/ []<><<Arrives(down[c], down'[c]) /\ uplink'[c] = uplink[c]>>_vars
        /\ []<>(uplink[c] # "")
    /\ \A port \in HubPorts : []<>~Stale(port)

FairSpec == Spec /\ Fair

---------------------------------------------------------------------------
\* Always

Bindings == UNION {
    {<<d, hub[h].reg[d].node>> : d \in {d \in Devices : hub[h].reg[d].node # 0}}
    \cup {<<d, hub[h].wl[d].node>> : d \in {d \in Devices : hub[h].wl[d].node # 0}} : h \in Hubs}
    \cup UNION {{<<hub[h].dir[n].dev, n>> : n \in {n \in Nodes : hub[h].dir[n].dev # ""}} : h \in Ours}

UniqueNodeIds ==
    /\ \A a, b \in Bindings : a[2] = b[2] => a[1] = b[1]
    /\ \A a \in Bindings : a[1] \in Devices => a[2] \notin HubNodes

OneToOneBinding == \A a, b \in Bindings : a[1] = b[1] => a[2] = b[2]

\* A registration is for ever, and a new one has a node id that was never given out.
NodeIdsNeverReused == [][
    \A h \in Hubs :
        /\ hub'[h].next >= hub[h].next
        /\ \A d \in Devices :
            LET old == hub[h].reg[d].node  new == hub'[h].reg[d].node
            IN IF old # 0 THEN new = old ELSE new = 0 \/ new >= hub[h].next]_vars

\* An entry appears or changes only where the device has just been bound; relays remember no credential, but for what
\* they may have to present to the parent, too.
CredentialsNeverCachedUpstream == [][
    \A h \in Ours : act'.event # <<"HubIsRestored", h>> =>
        /\ \A d \in Devices :
            LET new == hub'[h].wl[d]
            IN new # hub[h].wl[d] /\ new # NoEntry => \E p \in Sockets : hub'[h].links[p].dev = d
        /\ \A i \in 1 .. Len(hub'[h].pend) :
            LET q == hub'[h].pend[i] IN q.kind \in {"relayReg", "relayAuth"} => q.cred = 0 \/ q.climbs]_vars

RegistryHoldsNoCredential == \A h \in Ours, d \in Devices : DOMAIN hub[h].reg[d] = DOMAIN Unregistered

SessionImpliesWhitelist ==
    \A h \in Ours, p \in Sockets :
        LET session == hub[h].links[p] IN session.node # 0 => hub[h].wl[session.dev].node = session.node

\* A child hub's report changes no route that does not lead through that child.
LateOfflineKeepsNewRoute == [][
    act'.event[1] = "FrameGoesUp" /\ act'.event[3].t = "off" /\ ParentOf[act'.event[2]] \in Ours =>
        LET c == act'.event[2]
            n == act'.event[3].node
            old == hub[ParentOf[c]].dir[n]
        IN old.via # NodeOf[c] => hub'[ParentOf[c]].dir[n] = old]_vars

\* Every answer was asked for, and is the first to its request.
NoAnswerWithoutRequest == [][\A i \in 1 .. Len(act'.log) : act'.log[i].due]_vars

UnauthenticatedSeesOnlyRegisterAndAuth == [][
    \A i \in 1 .. Len(act'.log) :
        LET o == act'.log[i] IN o.to \in Sockets /\ ~o.bound => o.m.t \in {"regAns", "authAns", "refused"}]_vars

RevokeNeverReachesDevices == [][
    \A i \in 1 .. Len(act'.log) : act'.log[i].to \in Sockets => act'.log[i].m.t # "rev"]_vars

---------------------------------------------------------------------------
\* Once messages have drained and links are up

Drained == \A c \in Hubs \ {Root} : up[c] = <<>> /\ down[c] = <<>>
Settled == Drained /\ (\A c \in Hubs \ {Root} : hub[c].present /\ uplink[c] # "") /\ (\A port \in HubPorts : ~Stale(port))

\* As far as plain hubs were told, and hubs that lost what they had were told again.
RevokedStaysOut == Settled => \A h \in Hubs, d \in Devices : hub[h].wl[d].cred \notin revoked \ shaken.spared

RevokedEverywhere == Settled => \A h \in Hubs, d \in Devices : hub[h].wl[d].cred \notin revoked

OneLiveCredential ==
    Settled => \A d \in Devices : Cardinality({hub[h].wl[d].cred : h \in Hubs} \ {0}) <= 1

AtMostOneSession ==
    Settled => \A d \in Devices :
        Cardinality({x \in Hubs \X Sockets : \E y \in SessionsOn(x[1], x[2]) : y.dev = d}) <= 1

HubOfNode(n) == CHOOSE h \in Hubs : NodeOf[h] = n

RECURSIVE Leads(_, _)
Leads(h, n) ==
    LET route == hub[h].dir[n]
        at == hub[h].index[n].at
    IN IF h \in PlainHubs THEN at \in Sockets \/ (at \in HubPorts /\ Leads(Owner[at], n))
       ELSE
       /\ route.on /\ PortOfNode(hub[h], route.via) # ""
       /\ route.via = n \/ (route.via \in HubNodes /\ Leads(HubOfNode(route.via), n))

RoutesLeadToSessions == Settled => \A h \in Ours, n \in Nodes : hub[h].dir[n].on => Leads(h, n)

RECURSIVE Above(_)
Above(h) == {h} \cup (IF h = Root THEN {} ELSE Above(ParentOf[h]))

SessionsAreRouted ==
    Settled => \A h \in Hubs : \A p \in LinksOf(h) : \A x \in SessionsOn(h, p) :
        x.node \in Nodes => \A a \in Above(h) : a \in Ours => hub[a].dir[x.node].on

NoLockOut ==
    Settled => \A d \in Devices :
        LET last == admitted[d]
        IN last.hub # "" /\ last.cred \notin revoked => hub[last.hub].wl[d].cred = last.cred

\* What would happen if a device came to a hub with this credential and everything were delivered.
IsAdmitted(h, d, cred) ==
    LET p == CHOOSE p \in Sockets : TRUE
        tried == Drain(Authenticate(Now, p, h, d, cred, 0))
    IN \E i \in 1 .. Len(tried.log) :
        LET o == tried.log[i] IN o.from = h /\ o.to = p /\ o.m.t = "authAns" /\ o.m.code = "ok"

Live(d) == {hub[h].wl[d].cred : h \in Hubs} \ {0}

AdmittedAnywhere == Settled => \A d \in Devices : \A cred \in Live(d) : \A h \in Hubs : IsAdmitted(h, d, cred)

\* A device has a credential that some hub knows, or may register. Not claimed where credentials are revoked by name.
NobodyShutOut ==
    Settled => \A d \in Devices :
        IsProtected([s |-> hub[Authority]], d) => \E h \in Hubs : hub[h].wl[d].cred \in got[d]

\* Nothing is left over: no request unanswered, no order or revoke unacknowledged.
NothingLeftBehind ==
    Settled => \A h \in Ours :
        /\ hub[h].pend = <<>> /\ hub[h].fences = {} /\ hub[h].dismissed = {}
        /\ \A k \in DOMAIN hub[h].nb : hub[h].nb[k].owed = {} /\ hub[h].nb[k].wait = <<>>

\* A device's request is pending at the hub it is connected to, or answered.
AskedIsPending ==
    \A p \in Sockets : (\A h \in PlainHubs : hub[h].links[p] = Closed) =>
        asked[p] = UNION {{hub[h].pend[i].op : i \in {i \in 1 .. Len(hub[h].pend) : hub[h].pend[i].asker = p}} : h \in Ours}

---------------------------------------------------------------------------
\* Liveness, under FairSpec

PendingEventuallyAnswered ==
    \A p \in Sockets, op \in 1 .. Registers + Authentications : (op \in asked[p]) ~> (op \notin asked[p])

MessagesDrain == []<>Drained
=============================================================================
