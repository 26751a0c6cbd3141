------------------------------ MODULE PlainHub ------------------------------
(***************************************************************************)
(* A hub that does what the documents say (dialects `auth` and `login`) and *)
(* nothing else: no numbers, no debts, no orders, no announcements, and no  *)
(* memory of revokes. It handles one connection in order. Comments name     *)
(* document:line. A step in the making is the record `t` of HubAuth.tla,    *)
(* of which this machine uses `h`, `s`, `out`, `fresh` and, for the history *)
(* of the model, `issued`, `dead`, `bound` and `lost`.                      *)
(***************************************************************************)
EXTENDS Naturals, Sequences

CONSTANTS Root, Devices, Sockets, HubPorts, Owner, NodeOf, FirstNode,
    PlainHabits     \* subset of {"ids", "terse", "echo"}: answers copy the MsgID; a failure says to no hub whom it is about;
                    \* a revoke goes back to where it came from, too

Gone == [dev |-> "closed", node |-> 0]
Open == [dev |-> "", node |-> 0]
Nothing == [node |-> 0, cred |-> 0]
NotIndexed == [dev |-> "", at |-> ""]

Blank(ports, nodes) == [
    present |-> FALSE,                                  \* the parent has admitted this hub
    links   |-> [p \in ports |-> Gone],                 \* connected or not; the node of a child hub
    reg     |-> [d \in Devices |-> [node |-> 0]],       \* bindings, at the authority: 002:29
    next    |-> FirstNode,
    wl      |-> [d \in Devices |-> Nothing],            \* the whitelist: 000:16
    index   |-> [n \in nodes |-> NotIndexed],           \* where a device is: 000:49
    waiting |-> <<>>]                                   \* for the parent, oldest first

LOCAL Send(t, link, m) ==
    IF link = "" THEN t
    ELSE IF link = "up" THEN (IF t.s.present THEN [t EXCEPT !.out = Append(@, [to |-> link, m |-> m])] ELSE t)
    ELSE IF t.s.links[link] = Gone THEN t
    ELSE [t EXCEPT !.out = Append(@, [to |-> link, m |-> m])]

LOCAL Each(op(_, _), base, seq) ==
    LET f[i \in 0 .. Len(seq)] == IF i = 0 THEN base ELSE op(f[i - 1], seq[i]) IN f[Len(seq)]

LOCAL AsSequence(set) ==
    LET f[s \in SUBSET set] == IF s = {} THEN <<>> ELSE LET x == CHOOSE x \in s : TRUE IN <<x>> \o f[s \ {x}] IN f[set]

\* What was asked, by whom; `direct`: by a device of this hub.
LOCAL Asked(kind, link, op, dev, cred) ==
    [kind |-> kind, link |-> link, direct |-> link \in Sockets, op |-> op, dev |-> dev, cred |-> cred]

\* 000:58: to the connection that asked.
LOCAL Answer(t, a, code, node, cred) ==
    Send(t, a.link, [t |-> IF a.kind = "reg" THEN "regAns" ELSE "authAns",
                     op |-> IF a.direct \/ "ids" \in PlainHabits THEN a.op ELSE 0,
                     code |-> code, dev |-> IF code # "ok" /\ ~a.direct /\ "terse" \in PlainHabits THEN "" ELSE a.dev,
                     node |-> node, cred |-> cred])

LOCAL Fail(t, a, code) == Answer(t, a, code, 0, 0)

\* 000:10, 000:16, 000:49: the direct hub keeps the credential, every hub on the way where the device is.
LOCAL Admit(t, a, node, cred) ==
    LET kept == [t EXCEPT !.s.wl[a.dev] = [node |-> node, cred |-> cred], !.bound = <<a.dev, cred>>]
        stored == IF a.direct THEN kept ELSE t
        here == a.link \notin {"", "up"}
        indexed == IF here THEN [stored EXCEPT !.s.index[node] = [dev |-> a.dev, at |-> a.link]] ELSE stored
    IN Answer(indexed, a, "ok", node, cred)

\* 000:70: with a parent that is away, nobody can help.
LOCAL AskParent(t, a, m, otherwise) ==
    IF t.h = Root \/ a.link = "up" THEN Fail(t, a, otherwise)
    ELSE IF ~t.s.present THEN Fail(t, a, "away")
    ELSE Send([t EXCEPT !.s.waiting = Append(@, a)], "up", m)

\* 000:8, 000:9, 002:29: whoever has no parent allocates; a device that is known keeps its node.
Register(t, link, op, dev) ==
    LET a == Asked("reg", link, op, dev, 0)
        known == t.s.reg[dev].node
        node == IF known = 0 THEN t.s.next ELSE known
        bound == [t EXCEPT !.s.reg[dev].node = node, !.s.next = IF known = 0 THEN @ + 1 ELSE @, !.issued = dev]
    IN IF t.h = Root THEN Admit(bound, a, node, t.fresh)
       ELSE AskParent(t, a, [t |-> "reg", op |-> op, dev |-> dev], "away")

\* 000:50
Authenticate(t, link, op, dev, cred) ==
    LET a == Asked("auth", link, op, dev, cred)
        entry == t.s.wl[dev]
    IN IF entry.node = 0 THEN AskParent(t, a, [t |-> "auth", op |-> op, dev |-> dev, cred |-> cred], "no")
       ELSE IF entry.cred = cred THEN Admit(t, a, entry.node, cred)
       ELSE Fail(t, a, "no")

\* 002:8, 002:43: an answer goes to whoever asked for this device first.
LOCAL Answered(t, m) ==
    LET fits == {i \in 1 .. Len(t.s.waiting) :
                    t.s.waiting[i].dev = m.dev /\ (t.s.waiting[i].kind = "reg") = (m.t = "regAns")}
        i == CHOOSE i \in fits : \A j \in fits : i <= j
        a == t.s.waiting[i]
        rest == [t EXCEPT !.s.waiting = SubSeq(@, 1, i - 1) \o SubSeq(@, i + 1, Len(@))]
    IN IF fits = {} THEN t
       ELSE IF m.code = "ok" /\ (a.kind = "reg" \/ ~a.direct \/ m.cred = a.cred) THEN Admit(rest, a, m.node, m.cred)
       ELSE Fail(rest, a, IF m.code = "ok" THEN "no" ELSE m.code)

\* 000:11, 000:51: delete what is found, and pass it on, once.
Revoke(t, link, m) ==
    LET entry == t.s.wl[m.dev]
        agrees == entry.node # 0 /\ m.node \in {0, entry.node} /\ m.cred \in {0, entry.cred}
        deleted == IF agrees THEN [t EXCEPT !.s.wl[m.dev] = Nothing,
                                            !.dead = IF m.node = 0 /\ m.cred = 0 THEN @ \cup {entry.cred} ELSE @] ELSE t
        frame == [t |-> "rev", seq |-> 0, dev |-> m.dev, node |-> m.node, cred |-> m.cred]
        hubs == {p \in HubPorts \cap DOMAIN t.s.links : t.s.links[p].node # 0} \cup (IF t.s.present THEN {"up"} ELSE {})
        to == IF "echo" \in PlainHabits THEN hubs ELSE hubs \ {link}
        told == Each(LAMBDA u, p : Send(u, p, frame), deleted, AsSequence(to))
        away == {Owner[p] : p \in HubPorts \cap DOMAIN t.s.links} \ {Owner[p] : p \in hubs \ {"up"}}
        unheard == away # {} \/ (t.h # Root /\ ~t.s.present)
    IN IF unheard THEN [told EXCEPT !.lost = {m.dev}] ELSE told

LOCAL GoesUp(t, n) ==
    Send([t EXCEPT !.s.index[n] = NotIndexed], "up", [t |-> "off", dev |-> t.s.index[n].dev, node |-> n])

\* 000:53: looked up, removed and passed up.
Offline(t, n) == IF t.s.index[n] = NotIndexed THEN t ELSE GoesUp(t, n)

LinkDown(t, link) ==
    LET here == {n \in DOMAIN t.s.index : t.s.index[n].at = link}
        closed == [t EXCEPT !.s.links[link] = Gone,
                            !.s.waiting = [i \in DOMAIN @ |-> IF @[i].link = link THEN [@[i] EXCEPT !.link = ""] ELSE @[i]]]
        lost == [t EXCEPT !.s.present = FALSE, !.s.waiting = <<>>]
    IN IF link = "up" THEN Each(LAMBDA u, a : Fail(u, a, "away"), lost, t.s.waiting)
       ELSE Each(GoesUp, closed, AsSequence(here))

\* One frame from a neighbouring hub. What the documents do not know is dropped.
Handle(t, link, m) ==
    CASE m.t = "join" -> Send([t EXCEPT !.s.links[link] = [dev |-> Owner[link], node |-> NodeOf[Owner[link]]]], link,
                              [t |-> "joined"])
      [] m.t = "joined" -> [t EXCEPT !.s.present = TRUE]
      [] m.t = "reg" -> Register(t, link, m.op, m.dev)
      [] m.t = "auth" -> Authenticate(t, link, m.op, m.dev, m.cred)
      [] m.t \in {"regAns", "authAns"} -> Answered(t, m)
      [] m.t = "rev" -> Revoke(t, link, m)
      [] m.t = "off" -> Offline(t, m.node)
      [] OTHER -> t
=============================================================================
