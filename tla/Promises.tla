------------------------------ MODULE Promises ------------------------------
(***************************************************************************)
(* What a tree of hubs promises, as a machine of its own: who is           *)
(* registered, which credentials were issued and revoked, what rests at    *)
(* each hub, who is admitted, and what devices ask and are told.  It knows *)
(* no connection between hubs, no queue, no number.  A revoke is one event *)
(* that takes time to settle.  Every promise is a part of the next step,   *)
(* and has the name that it has in reference/hubauth/promises.  HubAuth.tla*)
(* refines this machine: Refinement.tla.                                   *)
(***************************************************************************)
EXTENDS Naturals, Sequences

CONSTANTS
    Hubs,       \* those that keep the promises
    Others,     \* those that know only the documents: nobody is locked out there by what Hubs do
    Devices, Sockets,
    Credentials,    \* numbers: all that may ever be issued
    Reserved,   \* node ids of the hubs themselves
    Whole       \* whether all hubs of the tree keep the promises, and none loses what it has

VARIABLES
    registry,   \* <<device, node>> at the authority
    known,      \* the same anywhere
    issued,     \* to whom credential 1, 2, ... was issued
    revoked,    \* credentials that were replaced, or that an operator meant
    gone,       \* those of them that are no more: their revoke has settled
    doubt,      \* credentials of which nothing is promised: a hub lost what it knew, or may not have heard
    rests,      \* [Hubs \cup Others -> <<device, credential>> that the hub keeps]
    session,    \* [Sockets -> [hub, dev] that it is connected to and admitted as, or ""]
    open,       \* [Sockets -> requests [op, dev, cred] that are not answered; a registration has the credential 0]
    quiet,      \* whether nothing is under way, and every hub can be reached
    welcome,    \* [<<hub, credential>> -> whether it would be admitted, were it presented now]: asked when all is quiet
    asked, told,    \* requests of devices, and what devices were told, in the last step
    named, lost     \* what an operator revoked in the last step; hubs that lost what they had
vars == <<registry, known, issued, revoked, gone, doubt, rests, session, open, quiet, asked, told, named, lost>>

Of(d) == {c \in 1 .. Len(issued) : issued[c] = d}
Renewed(d) == issued' # issued /\ issued'[Len(issued')] = d
Successes(h) == {a \in told' : a.hub = h /\ a.code = "ok"}
Asked(p) == open[p] \cup {a.what : a \in {a \in asked' : a.at = p}}
Answers(a, r) == a.op = r.op /\ a.dev = r.dev /\ a.renews = (r.cred = 0)
Answered(p) == {r \in Asked(p) : \E a \in told' : a.to = p /\ Answers(a, r)}
Left(h) == rests[h] \ rests'[h]

---------------------------------------------------------------------------
\* The promises: what may and must happen in a step

OneToOneBinding ==
    /\ registry \subseteq registry' \/ lost' # {}
    /\ LET now == known' IN \A a, b \in now : a[1] = b[1] => a[2] = b[2]

UniqueNodeIds ==
    LET now == known'
    IN /\ \A a, b \in now : a[2] = b[2] => a[1] = b[1]
       /\ \A a \in now : a[2] \notin Reserved
       /\ Whole => now \subseteq registry'

\* Whoever registers again ends all that was issued to it before.
Replacement ==
    issued' # issued =>
        /\ SubSeq(issued', 1, Len(issued)) = issued /\ Len(issued') = Len(issued) + 1
        /\ \A d \in Devices : Renewed(d) /\ Whole => Of(d) \subseteq revoked'

NoAnswerWithoutRequest ==
    LET now == told'
    IN \A a \in now :
        /\ \E r \in Asked(a.to) : Answers(a, r)
        /\ \A b \in now : b.to = a.to /\ b.op = a.op => b = a

\* A request is open until it is answered or its connection is gone, which no revoke does to a registration.
PendingEventuallyAnswered ==
    /\ \A p \in Sockets :
        LET rest == Asked(p) \ Answered(p)
            cut == session'[p].hub = "" /\ session[p].hub # ""
        IN /\ IF session'[p].hub = "" THEN open'[p] = {} ELSE open'[p] = rest
           /\ cut /\ Left(session[p].hub) # {} /\ lost' = {} => \A r \in rest : r.cred # 0
    /\ quiet' /\ Whole => \A p \in Sockets : open'[p] = {}

AdmittedByCredential ==
    /\ \A a \in told' : a.code = "ok" =>
        /\ a.cred \in 1 .. Len(issued') /\ issued'[a.cred] = a.dev
        /\ \E r \in Asked(a.to) : Answers(a, r) /\ r.cred \in {0, a.cred}
        /\ <<a.dev, a.cred>> \in rests'[a.hub] /\ session'[a.to] = [hub |-> a.hub, dev |-> a.dev]
    /\ \A p \in Sockets :
        LET now == session'[p]
        IN now.dev # "" =>
            /\ now = session[p] \/ \E a \in Successes(now.hub) : a.to = p
            /\ \E x \in rests'[now.hub] : x[1] = now.dev

RevokedStaysOut ==
    LET before == gone \ doubt'
        now == gone'
    IN /\ before \subseteq now /\ now \subseteq revoked'
       /\ \A a \in told' : a.code = "ok" => a.cred \notin before
       /\ \A h \in Hubs : \A x \in rests'[h] : x[2] \notin now
       /\ quiet' => revoked' \subseteq now \cup doubt'

\* Nothing but a revoke and a newer one ends a credential, and nobody is revoked but who was replaced, who was named, and
\* what is found on the way of a revoke of everything.
NoLockOut ==
    /\ \A h \in (Hubs \cup Others) \ lost' : \A x \in Left(h) :
        x[2] \in revoked' \cup doubt' \/ \E y \in rests'[h] : y[1] = x[1] /\ y[2] > x[2]
    /\ \A a \in told' : a.code = "no" => \A r \in Asked(a.to) :
        Answers(a, r) /\ r.cred # 0 => <<r.dev, r.cred>> \notin rests[a.hub] \/ r.cred \in revoked'
    /\ \A c \in revoked' \ revoked :
        \/ Renewed(issued[c])
        \/ \E x \in named' : x[1] = issued[c] /\ x[2] \in {0, c}
        \/ ~quiet /\ \E h \in Hubs : \E x \in Left(h) : x[2] = c
        \/ ~Whole

CredentialsNeverCachedUpstream ==
    \A h \in Hubs \ lost' : \A x \in rests'[h] \ rests[h] :
        \E a \in Successes(h) : <<a.dev, a.cred>> = x

Next ==
    /\ OneToOneBinding /\ UniqueNodeIds /\ Replacement
    /\ NoAnswerWithoutRequest /\ PendingEventuallyAnswered
    /\ AdmittedByCredential /\ RevokedStaysOut /\ NoLockOut /\ CredentialsNeverCachedUpstream

\* Once all is quiet, whoever has a credential that rests anywhere is admitted everywhere.
AdmittedAnywhere ==
    quiet /\ Whole =>
        \A h \in Hubs : \A x \in UNION {rests[o] : o \in Hubs} : x[2] \in revoked \/ welcome[h, x[2]]

Init == quiet = TRUE /\ revoked = {} /\ gone = {} /\ doubt = {} /\ \A p \in Sockets : open[p] = {}
Spec == Init /\ [][Next]_vars /\ []AdmittedAnywhere

---------------------------------------------------------------------------
\* When each promise says something: a step that it could forbid. TLC shows in which models such steps are reached.

Presented == {<<session'[a.at].hub, a.what.dev, a.what.cred>> : a \in {a \in asked' : a.what.cred # 0}}
RenewsDevice == \E b \in registry : Renewed(b[1])
SecondDevice == registry # {} /\ registry' # registry
TellsDevice == told' # {}
AnswersLater == \E p \in Sockets : open[p] \cap Answered(p) # {}
RevokesBesideRequest ==
    \E p \in Sockets : session[p].dev # "" /\ session'[p].dev = "" /\ Left(session[p].hub) # {} /\ \E r \in open[p] : r.cred = 0
AdmitsDevice == \E h \in Hubs : Successes(h) # {}
PresentsGone == \E x \in Presented : x[3] \in gone
EndsCredential == \E h \in Hubs : Left(h) # {}
PresentsAfterRevoke == revoked # {} /\ \E x \in Presented : x[1] # "" /\ <<x[2], x[3]>> \in rests[x[1]]
SettlesLive == quiet' /\ Whole /\ \E h \in Hubs : \E x \in rests'[h] : x[2] \notin revoked'
AdmitsElsewhere == \E h \in Hubs : \E x \in rests'[h] \ rests[h] : \E o \in Hubs \ {h} : rests[o] # {}
RevokeSettles == gone' # gone

---------------------------------------------------------------------------
\* What happens in the end, if what is under way arrives

RevokeArrives == \A c \in Credentials : c \in revoked ~> c \in gone \cup doubt
Settles == []<>quiet
=============================================================================
