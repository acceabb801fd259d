package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
)

// seeController is the advice for consequences of another problem.
const seeController = "see the check " + string(Controller)

func checkController(f Facts) Check {
	i := f.Controller.Installation
	c := Check{Name: Controller, Result: Problem}
	switch {
	case f.Controller.Err != nil:
		return unread(Controller, f.Controller.Err)
	case i.Deployment == "":
		c.Result = Unknown
		c.Found = fmt.Sprintf("there is no Lockstep Deployment in namespace %s", f.Namespace)
		c.Do = "install it, or name its namespace" + f.Hints.Elsewhere
		if f.isElsewhere() {
			c.Found += "; there is " + strings.Join(f.Others.Installations, ", ")
			c.Do = "name its namespace" + f.Hints.Elsewhere
		}
	case i.Problem != "":
		c.Found = fmt.Sprintf("deployment/%s would not start: %s", i.Deployment, i.Problem)
		c.Do = "correct the arguments of its container"
	case i.Wanted == 0:
		c.Found = fmt.Sprintf("deployment/%s has no replicas", i.Deployment)
		c.Do = fmt.Sprintf("unless it was stopped on purpose, set its replicas to 2: kubectl -n %s edit deployment/%s", f.Namespace, i.Deployment)
	case i.Ready == 0:
		c.Found = fmt.Sprintf("deployment/%s: none of %s is ready", i.Deployment, counted(i.Wanted, "pod"))
		c.Do = fmt.Sprintf("check its log: kubectl -n %s logs deployment/%s", f.Namespace, i.Deployment)
	case i.Ready < i.Wanted:
		c.Result = Warning
		c.Found = fmt.Sprintf("deployment/%s: %d of %s are ready", i.Deployment, i.Ready, counted(i.Wanted, "pod"))
		c.Do = fmt.Sprintf("kubectl -n %s describe deployment/%s", f.Namespace, i.Deployment)
	case i.Updated < i.Wanted:
		c.Result = Warning
		c.Found = fmt.Sprintf("deployment/%s: %d of %s run its newest template, and the others still run with the old flags", i.Deployment, i.Updated, counted(i.Wanted, "pod"))
		c.Do = fmt.Sprintf("kubectl -n %s rollout status deployment/%s", f.Namespace, i.Deployment)
	default:
		return ok(Controller, "deployment/%s has %s, all ready", i.Deployment, counted(i.Wanted, "pod"))
	}
	return c
}

// isElsewhere reports whether the named namespace contains nothing of Lockstep, and others
// do.
func (f Facts) isElsewhere() bool {
	return f.Controller.Err == nil && f.Controller.Installation.Deployment == "" && f.Controller.LeaderErr == nil && !f.Controller.Led && len(f.Others.Installations) > 0
}

func checkLeader(f Facts) Check {
	known := f.Controller.Installation.Deployment != "" && f.Controller.Installation.Problem == ""
	switch {
	case f.Controller.LeaderErr != nil:
		return unread(Leader, f.Controller.LeaderErr)
	case known && f.Controller.Installation.Lease == "":
		return ok(Leader, "leader election is off")
	case len(f.Controller.Rivals) > 0:
		return Check{
			Name: Leader, Result: Problem, Do: "install each of them in a namespace of its own, or remove one",
			Found:   fmt.Sprintf("deployment/%s and others use the same Lease, so only one of them works at a time", f.Controller.Installation.Deployment),
			Details: some(f.Controller.Rivals),
		}
	case f.isElsewhere():
		return Check{Name: Leader, Result: Problem, Found: fmt.Sprintf("no controller has ever led in namespace %s", f.Namespace), Do: seeController}
	case !f.Controller.Led && f.Controller.Installation.Deployment == "":
		return Check{Name: Leader, Result: Problem, Found: fmt.Sprintf("no controller has ever led in namespace %s", f.Namespace), Do: "install it: docs/start/getting-started.md"}
	case !f.Controller.Led:
		return Check{Name: Leader, Result: Problem, Found: fmt.Sprintf("no controller has ever led in namespace %s", f.Namespace), Do: "check the controller's log"}
	case f.Controller.Leader.Name == "":
		return Check{Name: Leader, Result: Problem, Found: "the last leader released the Lease, and no other one has acquired it", Do: f.noLeader()}
	case !f.Controller.Leader.Leads(f.time()):
		return Check{
			Name: Leader, Result: Problem, Do: "check that the controller runs and reaches the API server",
			Found: fmt.Sprintf("%s holds the Lease, but hasn't renewed it since %s", f.Controller.Leader.Name, f.Controller.Leader.Renewed.UTC().Format(time.RFC3339)),
		}
	case f.ledFromOutside():
		return Check{
			Name: Leader, Result: Warning, Do: "stop that process or the Deployment: they run with different flags and permissions",
			Found: fmt.Sprintf("%s leads, and isn't a pod of deployment/%s", f.Controller.Leader.Name, f.Controller.Installation.Deployment),
		}
	case f.Record.Stored.Version != "" && f.Version != "" && f.Record.Stored.Version != f.Version:
		return Check{
			Name: Leader, Result: Warning, Do: "use the same version of both",
			Found: fmt.Sprintf("%s leads with version %s, and this program is %s", f.Controller.Leader.Name, f.Record.Stored.Version, f.Version),
		}
	}
	return ok(Leader, "%s leads", f.Controller.Leader.Name)
}

// noLeader is what to do when there is no leader.
func (f Facts) noLeader() string {
	if f.Controller.Installation.Ready > 0 {
		return "another one acquires it within seconds; if not, check the controller's log"
	}
	return "start the controller"
}

// ledFromOutside reports whether a process outside the Deployment leads, such as one that a user
// started in a terminal. Pods on the host network carry the node's name.
func (f Facts) ledFromOutside() bool {
	i := f.Controller.Installation
	return i.isKnown() && i.PodsErr == nil && len(i.Pods) > 0 && !i.OnHost &&
		!slices.ContainsFunc(i.Pods, func(p Pod) bool { return p.Name == f.Controller.Leader.Host() })
}

func checkPermissions(f Facts) Check {
	i := f.Controller.Installation
	switch {
	case f.Controller.Err != nil || i.Deployment == "" || i.Problem != "":
		return Check{Name: Permissions, Result: Unknown, Found: "the needed permissions are not known without the controller's Deployment", Do: seeController}
	case f.Permissions.Err != nil:
		c := unread(Permissions, f.Permissions.Err)
		c.Do = "run it as a user who may create subjectaccessreviews.authorization.k8s.io, or check the controller's /readyz?verbose"
		return c
	case len(f.Permissions.Missing) == 0:
		return ok(Permissions, "%s has all of the %d permissions that its flags need", i.Account, f.Permissions.Asked)
	}
	c := Check{Name: Permissions, Result: Warning, Do: "grant them to " + i.Account.String(), Found: fmt.Sprintf("%d of %d permissions are missing", len(f.Permissions.Missing), f.Permissions.Asked)}
	missing := mainOf(f.Permissions.Missing)
	for use, count := range f.Permissions.Main {
		if missing[use] == count {
			c.Result = Problem
		}
	}
	if slices.ContainsFunc(f.Permissions.Missing, func(r access.Permission) bool { return r.Vital }) {
		c.Result = Problem
	}
	var details []string
	for _, r := range f.Permissions.Missing {
		details = append(details, fmt.Sprintf("%s: needed for %s", r, r.Use))
	}
	c.Details = some(details)
	return c
}

func checkKinds(f Facts) Check {
	if f.Kinds.Err != nil {
		return unread(Kinds, f.Kinds.Err)
	}
	c := ok(Kinds, "")
	var here, absent []string
	for _, k := range f.Kinds.Served {
		switch {
		case k.Here:
			here = append(here, k.Name)
		case k.BuiltIn || k.Custom:
			c.Result, c.Do = Problem, "install the CustomResourceDefinition, or remove the kind from the controller's flags"
			c.Details = append(c.Details, k.Name+" is not installed")
		default:
			absent = append(absent, k.Name)
		}
	}
	c.Found = "followed: " + strings.Join(here, ", ")
	if len(absent) > 0 {
		c.Found += "; not installed: " + strings.Join(absent, ", ")
	}
	if len(f.Kinds.Off) > 0 {
		c.Found += "; off: " + strings.Join(f.Kinds.Off, ", ")
	}
	return c
}

func checkCaches(f Facts) Check {
	i := f.Controller.Installation
	switch {
	case f.Controller.Err != nil || i.Deployment == "":
		return Check{Name: Caches, Result: Unknown, Found: "the controller's pods are not known", Do: seeController}
	case i.PodsErr != nil:
		return unread(Caches, i.PodsErr)
	case len(i.Pods) == 0:
		return Check{Name: Caches, Result: Problem, Found: "the controller has no pods", Do: seeController}
	}
	c, silent := ok(Caches, ""), 0
	ready := 0
	for _, pod := range i.Pods {
		if pod.Ready {
			ready++
		} else {
			c.Result = Problem
			c.Details = append(c.Details, pod.Name+" is not ready")
		}
		if pod.ReportErr != nil {
			silent++
		}
		for _, line := range pod.Report {
			// A kind that isn't installed isn't followed, as expected.
			if detail, bad := strings.CutPrefix(line, "[-] "); bad && !strings.HasSuffix(detail, "not installed in this cluster") {
				c.Details = append(c.Details, pod.Name+": "+detail)
				c.Result = worse(c.Result, Warning)
			}
		}
	}
	c.Found = fmt.Sprintf("ready pods: %d of %d", ready, len(i.Pods))
	if c.Result != OK {
		c.Do = "grant the missing permissions, or check the pod's log"
	}
	if silent > 0 {
		c.Found += fmt.Sprintf("; %d didn't report details", silent)
	}
	c.Details = some(c.Details)
	return c
}

// worse is the worse of two results other than Unknown.
func worse(a, b Result) Result {
	if a == Problem || b == Problem {
		return Problem
	}
	if a == Warning || b == Warning {
		return Warning
	}
	return OK
}

// mostSkew is how far clocks may differ. The API server's has a resolution of a second.
const mostSkew = 5 * time.Second

func checkClock(f Facts) Check {
	if f.Clock.Err != nil {
		return unread(Clock, f.Clock.Err)
	}
	c := ok(Clock, "this machine, the API server and the leader agree")
	if here := beyond(f.Clock.Times.Server, f.Clock.Times.Sent, f.Clock.Times.Answered); here != 0 {
		c.Details = append(c.Details, fmt.Sprintf("this machine's clock is %s the API server's", ahead(-here)))
	}
	switch {
	case !f.Controller.Led || f.Controller.Leader.Name == "" || f.Controller.Leader.WrittenAt.IsZero():
		c.Found = "this machine and the API server agree; the leader's clock is not known"
	default:
		// The leader reads its clock, then writes: that may take as long as the Lease lasts.
		if leader := beyond(f.Controller.Leader.WrittenAt, f.Controller.Leader.Renewed, f.Controller.Leader.Expires); leader != 0 {
			c.Details = append(c.Details, fmt.Sprintf("the leader's clock is %s the API server's", ahead(-leader)))
		}
	}
	if len(c.Details) > 0 {
		c.Result, c.Found, c.Do = Warning, "clocks differ", "set the clocks, for example with NTP; ages and the expiry of a Lease depend on them"
	}
	return c
}

// beyond is how far a time with a resolution of a second is outside of two others, zero when
// it isn't by more than mostSkew.
func beyond(t, from, to time.Time) time.Duration {
	switch {
	case t.Before(from.Add(-mostSkew)):
		return t.Sub(from)
	case t.After(to.Add(mostSkew)):
		return t.Sub(to)
	}
	return 0
}

func ahead(d time.Duration) string {
	if d < 0 {
		return d.Abs().Round(time.Second).String() + " behind"
	}
	return d.Round(time.Second).String() + " ahead of"
}

// nearlyFull is the used part of the room, in percent, from which an operator should act.
const nearlyFull = 80

func checkRecord(f Facts) Check {
	switch {
	case f.Record.Err != nil:
		return unread(Record, f.Record.Err)
	case !f.Record.Stored.Found:
		c := Check{Name: Record, Result: Warning, Found: fmt.Sprintf("there is no record in namespace %s: Lockstep hasn't followed a workload yet", f.Namespace), Do: "annotate a workload with lockstep.dev/reload: auto"}
		if asking, _ := f.asking(); asking > 0 {
			c.Do = "workloads request to be followed: see the check " + string(Leader)
		}
		return c
	}
	c, fullest := ok(Record, ""), 0
	perNamespace, perShard := ledger.Room()
	look := func(what string, used, room int) {
		percent := used * 100 / room
		fullest = max(fullest, percent)
		switch {
		case percent >= 100:
			c.Result = Problem
		case percent >= nearlyFull:
			c.Result = worse(c.Result, Warning)
		default:
			return
		}
		c.Details = append(c.Details, fmt.Sprintf("%s: %d of %d KiB", what, used>>10, room>>10))
	}
	for _, u := range f.Record.Stored.Used {
		look(u.Name, u.All, perShard)
		for _, ns := range sortedKeys(u.Namespaces) {
			if ns != "" {
				look("namespace "+ns+" in "+u.Name, u.Namespaces[ns], perNamespace)
			}
		}
	}
	tooNew := 0
	for _, e := range f.Record.Stored.Entries {
		if e.TooNew {
			tooNew++
		}
	}
	c.Found = fmt.Sprintf("%s on record; the fullest part is %d%% full", counted(len(f.Record.Stored.Entries), "workload"), fullest)
	if c.Result != OK {
		c.Do = "Lockstep doesn't follow new workloads of a full part: delete workloads that you don't need, or let them follow fewer sources"
	}
	if tooNew > 0 {
		c.Result, c.Do = worse(c.Result, Warning), cmp.Or(c.Do, "run that version again")
		c.Details = append(c.Details, counted(tooNew, "workload")+" on record in the format of a newer Lockstep version: this version does not roll them out")
	}
	c.Details = some(c.Details)
	return c
}
