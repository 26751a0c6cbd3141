----------------------------- MODULE Refinement -----------------------------
(***************************************************************************)
(* How the tree of HubAuth.tla is a machine of Promises.tla.  Where hubs   *)
(* are plain, the promises are those of our own hubs: what rests at them,  *)
(* who is admitted there, what is asked and told there.                    *)
(***************************************************************************)
EXTENDS HubAuth

LOCAL Entries(h) == {<<d, hub[h].wl[d].cred>> : d \in {d \in Devices : hub[h].wl[d].cred # 0}}

\* What a hub keeps beside its whitelist: the credential of a request that it has passed on for good, one that stands in the
\* registry, or one that is owed to a neighbour though no revoke has named it.
LOCAL Strays(h) ==
    LET s == hub[h]
        passed == {q \in {s.pend[i] : i \in 1 .. Len(s.pend)} : q.kind \in {"relayReg", "relayAuth"} /\ ~q.climbs}
        owed(nb) == {o.m : o \in nb.owed} \cup {nb.wait[i] : i \in 1 .. Len(nb.wait)}
        debts == UNION {owed(s.nb[k]) : k \in DOMAIN s.nb}
    IN {<<q.dev, q.cred>> : q \in {q \in passed : q.cred # 0}}
       \cup {<<m.dev, m.cred>> : m \in {m \in debts : m.cred # 0 /\ m.cred \notin revoked}}
       \cup {<<d, s.reg[d].cred>> : d \in {d \in Devices : "cred" \in DOMAIN s.reg[d]}}

\* Successes that are on their way.
LOCAL Carried(frames) ==
    {frames[i].cred : i \in {i \in 1 .. Len(frames) : IsAnswer(frames[i]) /\ frames[i].code = "ok"}}

LOCAL Held ==
    UNION {{hub[h].wl[d].cred : d \in Devices} : h \in Hubs}
    \cup UNION {Carried(up[c]) \cup Carried(down[c]) : c \in Hubs \ {Root}}

LOCAL SessionOf(p) ==
    LET at == {h \in Ours : hub[h].links[p] # Closed}
        h == CHOOSE h \in at : TRUE
    IN IF at = {} THEN [hub |-> "", dev |-> ""] ELSE [hub |-> h, dev |-> hub[h].links[p].dev]

LOCAL Requests(p) ==
    UNION {{[op |-> q.op, dev |-> q.dev, cred |-> IF q.kind = "reg" THEN 0 ELSE q.cred]
                : q \in {q \in {hub[h].pend[i] : i \in 1 .. Len(hub[h].pend)} : q.asker = p}} : h \in Ours}

\* The last event. What a device without a session is refused was no request of this machine.
LOCAL Told ==
    {LET o == act.log[i]
     IN IF IsAnswer(o.m)
        THEN [to |-> o.to, hub |-> o.from, nth |-> i, renews |-> o.m.t = "regAns",
              op |-> o.m.op, code |-> o.m.code, dev |-> o.m.dev, cred |-> o.m.cred]
        ELSE [to |-> o.to, hub |-> o.from, nth |-> i, renews |-> FALSE, op |-> 0, code |-> o.m.t, dev |-> "", cred |-> 0]
     : i \in {i \in 1 .. Len(act.log) :
                act.log[i].to \in Sockets /\ act.log[i].from \in Ours /\ act.log[i].m.t # "refused"}}

LOCAL Asks ==
    LET e == act.event
        request == IF e[1] = "DeviceRegisters" THEN [op |-> e[5], dev |-> e[4], cred |-> 0]
                   ELSE [op |-> e[6], dev |-> e[4], cred |-> e[5]]
    IN IF e[1] \in {"DeviceRegisters", "DeviceAuthenticates"} /\ e[3] \in Ours THEN {[at |-> e[2], what |-> request]} ELSE {}

P == INSTANCE Promises WITH
    Hubs <- Ours,
    Others <- PlainHubs,
    Credentials <- Issued,
    Reserved <- HubNodes,
    Whole <- PlainHubs = {} /\ Losses = 0 /\ Restores = 0,
    registry <- {<<d, hub[Authority].reg[d].node>> : d \in {d \in Devices : hub[Authority].reg[d].node # 0}},
    known <- {b \in Bindings : b[1] \in Devices},
    issued <- given,
    gone <- (revoked \ shaken.spared) \ Held,
    doubt <- shaken.spared,
    rests <- [h \in Hubs |-> IF h \in Ours THEN Entries(h) \cup Strays(h) ELSE Entries(h)],
    session <- [p \in Sockets |-> SessionOf(p)],
    open <- [p \in Sockets |-> Requests(p)],
    quiet <- Settled,
    welcome <- [h \in Ours, cred \in 1 .. Len(given) |-> IsAdmitted(h, given[cred], cred)],
    asked <- Asks,
    told <- Told,
    named <- IF act.event[1] = "OperatorRevokes" THEN {<<act.event[3], act.event[4]>>} ELSE {},
    lost <- IF act.event[1] \in {"HubBeginsAnew", "HubIsRestored"} THEN {act.event[2]} ELSE {}

Refines == P!Spec
\* The same one by one, for the mistakes that break them.
KeepsOneToOneBinding == [][P!OneToOneBinding]_(P!vars)
KeepsUniqueNodeIds == [][P!UniqueNodeIds]_(P!vars)
KeepsReplacement == [][P!Replacement]_(P!vars)
KeepsNoAnswerWithoutRequest == [][P!NoAnswerWithoutRequest]_(P!vars)
KeepsPendingEventuallyAnswered == [][P!PendingEventuallyAnswered]_(P!vars)
KeepsAdmittedByCredential == [][P!AdmittedByCredential]_(P!vars)
KeepsRevokedStaysOut == [][P!RevokedStaysOut]_(P!vars)
KeepsNoLockOut == [][P!NoLockOut]_(P!vars)
KeepsCredentialsNeverCachedUpstream == [][P!CredentialsNeverCachedUpstream]_(P!vars)
KeepsAdmittedAnywhere == P!AdmittedAnywhere
KeepsRevokeArrives == P!RevokeArrives
KeepsSettles == P!Settles

---------------------------------------------------------------------------
\* An action constraint that holds always, and prints the first step of each kind about which a promise says something.

LOCAL Note(i, promise, what, reached) ==
    TLCGet(i) \/ ~reached \/ (PrintT(<<"reached", promise, what>>) /\ TLCSet(i, TRUE))

ASSUME \A i \in 1 .. 12 : TLCSet(i, FALSE)

Reaching ==
    /\ Note(1, "OneToOneBinding", "RenewsDevice", P!RenewsDevice)
    /\ Note(2, "UniqueNodeIds", "SecondDevice", P!SecondDevice)
    /\ Note(3, "NoAnswerWithoutRequest", "TellsDevice", P!TellsDevice)
    /\ Note(4, "PendingEventuallyAnswered", "AnswersLater", P!AnswersLater)
    /\ Note(5, "PendingEventuallyAnswered", "RevokesBesideRequest", P!RevokesBesideRequest)
    /\ Note(6, "AdmittedByCredential", "AdmitsDevice", P!AdmitsDevice)
    /\ Note(7, "RevokedStaysOut", "PresentsGone", P!PresentsGone)
    /\ Note(8, "NoLockOut", "EndsCredential", P!EndsCredential)
    /\ Note(9, "NoLockOut", "PresentsAfterRevoke", P!PresentsAfterRevoke)
    /\ Note(10, "AdmittedAnywhere", "SettlesLive", P!SettlesLive)
    /\ Note(11, "CredentialsNeverCachedUpstream", "AdmitsElsewhere", P!AdmitsElsewhere)
    /\ Note(12, "RevokeArrives", "RevokeSettles", P!RevokeSettles)
=============================================================================
