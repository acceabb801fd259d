package notice_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
)

func rollout(name string) notice.Notice {
	return notice.Notice{Reason: input.Reloaded, Severity: notice.Info, Namespace: "shop", Kind: "Deployment", Name: name, Text: "rolled out", Change: "configmap/app 2"}
}

func held(namespace, name string) notice.Notice {
	return notice.Notice{Reason: input.Held, Severity: notice.Warning, Namespace: namespace, Kind: "Deployment", Name: name, Text: "held"}
}

func failing(reason input.Reason, name string) notice.Notice {
	return notice.Notice{Reason: reason, Severity: notice.Error, Namespace: "shop", Name: name, Text: "failed", Change: "configmap/app 2"}
}

func in(namespace string, n notice.Notice) notice.Notice {
	n.Namespace = namespace
	return n
}

func shared(namespace, name string) notice.Notice {
	n := in(namespace, failing(input.VersionStopped, name))
	n.Shared = true
	return n
}

func stop(text string) notice.Notice {
	return notice.Notice{Reason: input.Stopped, Severity: notice.Warning, Kind: "ConfigMap", Name: "lockstep-stop", Text: text}
}

// step is a moment in the life of a queue.
type step struct {
	after time.Duration // since the first
	add   []notice.Notice
	want  []string // the messages that are sent then
}

// TestQueue plays a receiver that takes every message as soon as it is due.
func TestQueue(t *testing.T) {
	t.Parallel()
	other := rollout("other")
	other.Change = "configmap/app 3"
	failed := held("shop", "a")
	failed.Text = "another text"
	for name, tc := range map[string]struct {
		reason string
		policy notice.Policy
		steps  []step
	}{
		"Batch": {"warnings are gathered", notice.Policy{Batch: 5 * time.Second}, []step{
			{0, []notice.Notice{held("shop", "a")}, nil},
			{4 * time.Second, []notice.Notice{held("shop", "b")}, nil},
			{5 * time.Second, nil, []string{"Held shop a b"}},
		}},
		"Groups": {"by reason and namespace", notice.Policy{Batch: time.Second}, []step{
			{0, []notice.Notice{held("shop", "a"), held("blog", "a"), rollout("a")}, nil},
			{time.Second, nil, []string{"Held shop a", "Held blog a"}},
			{6 * time.Second, nil, []string{"Reloaded shop a"}},
		}},
		"Changes": {"by reason and change", notice.Policy{Batch: time.Second}, []step{
			{0, []notice.Notice{rollout("a"), other, rollout("b")}, nil},
			{6 * time.Second, nil, []string{"Reloaded shop a b", "Reloaded shop other"}},
		}},
		"Failure": {"the version that is stopped, and the workload that failed with it", notice.Policy{Batch: time.Second}, []step{
			{0, []notice.Notice{failing(input.VersionStopped, "app"), failing(input.RolloutFailed, "web")}, nil},
			{time.Second, nil, []string{"VersionStopped shop app web"}},
		}},
		"Namespaces": {"the same content in another namespace is another change, unless namespaces share it", notice.Policy{Batch: time.Second}, []step{
			{0, []notice.Notice{in("shop", failing(input.VersionStopped, "a")), in("blog", failing(input.VersionStopped, "b")), shared("shop", "c"), shared("blog", "d")}, nil},
			{time.Second, nil, []string{"VersionStopped shop a", "VersionStopped blog b", "VersionStopped  c d"}},
		}},
		"KillSwitch": {"each change is news, and comes at once", notice.Policy{Batch: time.Second}, []step{
			{0, []notice.Notice{stop("incident 42")}, nil},
			{2 * time.Second, []notice.Notice{stop("nothing is stopped")}, []string{"Stopped  lockstep-stop"}},
			{4 * time.Second, []notice.Notice{stop("incident 42")}, []string{"Stopped  lockstep-stop"}},
			{6 * time.Second, nil, []string{"Stopped  lockstep-stop"}},
		}},
		"Ramp": {"a change that spreads is one message, and then one each five minutes", notice.Policy{Batch: 5 * time.Second}, []step{
			{0, []notice.Notice{rollout("a")}, nil},
			{29 * time.Second, []notice.Notice{rollout("b")}, nil},
			{30 * time.Second, nil, []string{"Reloaded shop a b"}},
			{40 * time.Second, []notice.Notice{rollout("c")}, nil},
			{5 * time.Minute, []notice.Notice{rollout("d")}, nil},
			{5*time.Minute + 30*time.Second, nil, []string{"Reloaded shop c d"}},
			{11 * time.Minute, []notice.Notice{rollout("e")}, nil},
			{11*time.Minute + 30*time.Second, nil, []string{"Reloaded shop e"}},
		}},
		"Repetitions": {"what is repeated is sent once", notice.Policy{}, []step{
			{0, []notice.Notice{held("shop", "a")}, []string{"Held shop a"}},
			{30 * time.Minute, []notice.Notice{held("shop", "a")}, nil},
			{60 * time.Minute, []notice.Notice{held("shop", "a"), held("shop", "b")}, []string{"Held shop b"}},
			{90 * time.Minute, []notice.Notice{held("shop", "a"), failed}, []string{"Held shop a"}},
		}},
		"Recurrence": {"what comes again after an hour is new", notice.Policy{}, []step{
			{0, []notice.Notice{held("shop", "a")}, []string{"Held shop a"}},
			{61 * time.Minute, []notice.Notice{held("shop", "a")}, []string{"Held shop a"}},
		}},
		"Reminder": {"what goes on is sent again after a day", notice.Policy{}, reminded()},
		"Rollouts": {"each rollout happened", notice.Policy{}, []step{
			{0, []notice.Notice{rollout("a")}, []string{"Reloaded shop a"}},
			{10 * time.Minute, []notice.Notice{rollout("a")}, []string{"Reloaded shop a"}},
		}},
		"Repeats": {"an Alertmanager wants repetitions", notice.Policy{Repeats: true}, []step{
			{0, []notice.Notice{held("shop", "a"), held("shop", "a")}, []string{"Held shop a"}},
			{30 * time.Minute, []notice.Notice{held("shop", "a")}, []string{"Held shop a"}},
		}},
		"Single": {"a line for each, in order", notice.Policy{Batch: time.Second, Single: true, Repeats: true}, []step{
			{0, []notice.Notice{rollout("a"), held("shop", "b"), rollout("a")}, nil},
			{time.Second, nil, []string{"Reloaded shop a", "Held shop b", "Reloaded shop a"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := notice.NewQueue(tc.policy)
			for _, s := range tc.steps {
				now := at().Add(s.after)
				for _, n := range s.add {
					q.Add(n, now)
				}
				due := q.Due(now)
				if diff := cmp.Diff(s.want, shown(due)); diff != "" {
					t.Errorf("%s: after %s: %s", tc.reason, s.after, diff)
				}
				q.Done(due, now)
			}
			if next, waits := q.Next(); waits || q.Len() != 0 {
				t.Errorf("%d wait until %s", q.Len(), next)
			}
		})
	}
}

// reminded is a hold that is reported every half hour.
func reminded() []step {
	steps := []step{{0, []notice.Notice{held("shop", "a")}, []string{"Held shop a"}}}
	for i := range 47 {
		steps = append(steps, step{time.Duration(i+1) * 30 * time.Minute, []notice.Notice{held("shop", "a")}, nil})
	}
	return append(steps, step{24 * time.Hour, []notice.Notice{held("shop", "a")}, []string{"Held shop a"}})
}

func shown(pending []notice.Pending) (all []string) {
	for _, p := range pending {
		words := []string{string(p.Reason), p.Namespace}
		for _, n := range p.Notices {
			words = append(words, n.Name)
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// TestArrivedMeanwhile: a notice that arrives while its group is on the way isn't lost, and a group
// that was pushed out meanwhile doesn't confuse the queue.
func TestArrivedMeanwhile(t *testing.T) {
	t.Parallel()
	q := notice.NewQueue(notice.Policy{})
	q.Add(held("shop", "a"), at())
	due := q.Due(at())
	q.Add(held("shop", "b"), at())
	q.Done(due, at())
	if got := shown(q.All()); len(got) != 1 || got[0] != "Held shop b" {
		t.Errorf("%q wait", got)
	}
	if next, waits := q.Next(); !waits || !next.Equal(at().Add(5*time.Minute)) {
		t.Errorf("it waits until %s", next)
	}
	gone := q.All()
	for i := range 600 {
		n := held("shop", "a")
		n.Change = fmt.Sprint(i)
		n.Name = fmt.Sprint(i)
		q.Add(n, at())
	}
	q.Done(gone, at())
	if q.Len() != 500 {
		t.Errorf("%d wait", q.Len())
	}
}

// TestBounds: a namespace with more messages than a queue holds loses its own oldest, and what was
// dropped counts as new when it comes again.
func TestBounds(t *testing.T) {
	t.Parallel()
	q := notice.NewQueue(notice.Policy{})
	q.Add(held("quiet", "before"), at())
	dropped := 0
	loud := func(i int) notice.Notice {
		n := held("loud", fmt.Sprint(i))
		n.Change = fmt.Sprint(i)
		return n
	}
	for i := range 1000 {
		dropped += q.Add(loud(i), at())
	}
	q.Add(held("calm", "after"), at())
	all := strings.Join(shown(q.All()), "\n")
	if q.Len() != 500 || dropped+1 != q.Dropped() || q.Dropped() != 502 {
		t.Errorf("%d wait, %d were dropped, %d in all", q.Len(), dropped, q.Dropped())
	}
	for text, want := range map[string]bool{"Held quiet before": true, "Held calm after": true, "Held loud 999": true, "Held loud 0\n": false} {
		if strings.Contains(all, text) != want {
			t.Errorf("%q waits: %t", text, !want)
		}
	}
	q.Reported(502)
	q.Done(q.All(), at())
	q.Add(loud(0), at())
	q.Add(loud(999), at())
	if got := shown(q.All()); len(got) != 1 || got[0] != "Held loud 0" || q.Dropped() != 0 {
		t.Errorf("%q wait, %d are dropped", got, q.Dropped())
	}
}

// TestBoundsOfAGroup: the notices of one message are listed up to a bound, those of all too. The
// others are counted.
func TestBoundsOfAGroup(t *testing.T) {
	t.Parallel()
	q := notice.NewQueue(notice.Policy{})
	for group := range 60 {
		for i := range 200 {
			n := rollout(fmt.Sprint(i))
			n.Change = fmt.Sprint(group)
			n.Text = strings.Repeat("ü", 3000)
			q.Add(n, at())
		}
	}
	listed := 0
	for _, p := range q.All() {
		listed += len(p.Notices)
		if p.Count() != 200 || len(p.Notices) < 10 || len(p.Notices) > 100 || len(p.Notices[0].Text) > 1000 {
			t.Errorf("%d of %d are listed, with texts of %d bytes", len(p.Notices), p.Count(), len(p.Notices[0].Text))
		}
	}
	if listed > 4096+60*10 {
		t.Errorf("%d are listed", listed)
	}
	q.Done(q.All(), at())
	if q.Len() != 0 {
		t.Errorf("%d wait", q.Len())
	}
}
