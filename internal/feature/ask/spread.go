package ask

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// Spreading is how the current version of an input reaches the workloads that use it.
type Spreading struct {
	Input string `json:"input"`
	// Users is the number of followed workloads that use it.
	Users int `json:"users"`
	// Healthy is the number of workloads known to be healthy with the current version.
	Healthy int `json:"healthy"`
	// Rolling is the number of workloads that are getting it now.
	Rolling int `json:"rolling"`
	// Waiting is the number of workloads that get it later.
	Waiting int `json:"waiting"`
	// AtMost is the number of workloads that may roll at the same time, omitted if it isn't limited
	// or the controller's flags aren't known.
	AtMost int `json:"atMost,omitempty"`
	// RollingNow are the names of the first few workloads that are getting it now.
	RollingNow []string `json:"rollingNow,omitempty"`
	// InLine is the number of workloads that wait for their turn.
	InLine int `json:"inLine,omitempty"`
	// Next is the first of them.
	Next string `json:"next,omitempty"`
	// Awaits is the workload with lockstep.dev/first that the healthy ones wait for and that can't begin yet.
	Awaits string `json:"awaits,omitempty"`
	// Place is the place of the explained workload in this line.
	Place int `json:"place,omitempty"`
}

// isOpen reports whether the version is on its way: workloads get it now, are in line, or wait
// while others have it. While all of them wait for something else, there is nothing to tell.
func (s Spreading) isOpen() bool { return s.Rolling+s.InLine > 0 || s.Healthy > 0 && s.Waiting > 0 }

// Window is a maintenance window.
type Window struct {
	// Text is the window as it is written in the setting.
	Text string `json:"text"`
	// On is the place of the setting, such as "on the workload".
	On string `json:"on"`
	// Opens is the time at which it opens, omitted while it is open.
	Opens *time.Time `json:"opens,omitempty"`
}

func windowOf(w rollouts.WindowState) *Window {
	if w.Text == "" {
		return nil
	}
	return &Window{Text: w.Text, On: w.On, Opens: known(w.Opens)}
}

// Fleet is what the record says about the workloads that share inputs.
type Fleet struct {
	Entries map[kube.Key]record.Entry
	// Failures are the versions with which workloads failed, as record.Published names them.
	Failures map[input.Change]record.Failure
	// First are the workloads that go first.
	First map[kube.Key]bool
	Serves
}

// FirstOf are the workloads whose annotations ask to go first.
func FirstOf(workloads []cluster.Header) map[kube.Key]bool {
	first := map[kube.Key]bool{}
	for _, w := range workloads {
		if (settings.Native{}).Intent(w.Annotations, nil).First {
			first[w.Key] = true
		}
	}
	return first
}

// IsShared reports whether a source is one change in all namespaces.
func (v Serves) IsShared(id input.ID) bool { return slices.Contains(v.Shared, id) }

// Failure is what is on record of a version with which workloads failed.
func (f Fleet) Failure(c input.Change) record.Failure { return f.Failures[record.Published(c)] }

// subject is an input that workloads share. An image is the same for workloads that run the
// same digest, whatever their containers are called.
type subject struct {
	namespace string
	id        input.ID
	digest    string
}

func (f Fleet) subjectOf(namespace string, id input.ID, given record.Delivered) subject {
	switch {
	case !id.IsSource():
		return subject{namespace, input.Image(""), cmp.Or(given.Due, given.Version.Short())}
	case f.IsShared(id):
		return subject{id: id}
	}
	return subject{namespace: namespace, id: id}
}

// lineup are the inputs on their way, and the order in which workloads get them. The functions
// that order them are the controller's.
type lineup struct {
	Fleet

	spreads map[subject]*spread.Spread
	lines   map[subject][]spread.Member
	// awaits describes the workload that users want to be the first, while the others wait for it.
	awaits map[subject]string
	// failed are the inputs whose current version failed on a workload, and barred those for
	// which others wait because of it.
	failed, barred map[subject]bool
}

// lineup computes who is next.
func (f Fleet) lineup() lineup {
	told := map[subject][]string{} // by workloads that wait for the first one
	l := lineup{Fleet: f, spreads: map[subject]*spread.Spread{}, lines: map[subject][]spread.Member{}, awaits: map[subject]string{}, failed: map[subject]bool{}, barred: map[subject]bool{}}
	for key, entry := range f.Entries {
		if !entry.GoneAt.IsZero() || entry.TooNew {
			continue
		}
		for id, given := range entry.Inputs {
			at := f.subjectOf(key.Namespace, id, given)
			if l.spreads[at] == nil {
				l.spreads[at] = &spread.Spread{}
			}
			l.spreads[at].Set(spread.Member{ID: key.ID(), Namespace: key.Namespace, First: f.First[key], Standing: standing(entry, given)})
			if given.Due != "" && entry.Decision.Reason == input.AwaitsFirst {
				canary, _, _ := strings.Cut(entry.Decision.Message, ": ")
				told[at] = append(told[at], canary)
			}
			l.failed[at] = l.failed[at] || f.hasFailed(key, id, given)
			l.barred[at] = l.barred[at] || given.Due != "" && entry.Decision.Reason == input.VersionStopped
		}
	}
	l.line(told)
	return l
}

// line puts the members of each input into their order.
func (l *lineup) line(told map[subject][]string) {
	for at, s := range l.spreads {
		if line := s.Line(); len(line) > 0 {
			l.lines[at] = line
		}
		if len(told[at]) > 0 {
			l.awaits[at] = canary(s, told[at])
		}
	}
}

// canary describes the workload that users want to be the first with an input, while others wait for it, empty when
// there is none. The decision of a workload names the one of another input, if it waits in both.
func canary(s *spread.Spread, told []string) (text string) {
	for m := range s.Members() {
		if !m.First || !m.IsWaiting() {
			continue
		}
		name := objectname.OfID(m.ID) + " goes first"
		for _, one := range told {
			if strings.HasPrefix(one, name) {
				return one
			}
		}
		if text == "" || name < text {
			text = name
		}
	}
	return text
}

// standing is how far a workload is with the current version of an input.
func standing(e record.Entry, given record.Delivered) spread.Standing {
	switch {
	case given.Due != "" && (e.Decision.Reason == input.AwaitsTurn || e.Decision.Reason == input.AwaitsFirst):
		return spread.Ready
	case given.Due != "":
		return spread.Held // or it asks later: it isn't in line
	case given.Stage == record.StageRolling && e.Turn.Template != "" && !e.Turn.Freed:
		return spread.Rolling
	case given.Stage == record.StageProven:
		return spread.Proven
	}
	return spread.Has
}

// of is how an input spreads, seen from a workload that uses it.
func (l *lineup) of(key kube.Key, id input.ID, given record.Delivered) Spreading {
	at := l.subjectOf(key.Namespace, id, given)
	s, known := l.spreads[at]
	if !known {
		return Spreading{}
	}
	n, line := s.Count(), l.lines[at]
	all := Spreading{
		Input: id.String(), Users: n.All, Healthy: n.Proven, Rolling: n.Rolling, Waiting: n.Waiting, AtMost: l.AtMost, InLine: len(line), Awaits: l.awaits[at],
		Place: 1 + slices.IndexFunc(line, func(m spread.Member) bool { return m.ID == key.ID() }),
	}
	if len(line) > 0 {
		all.Next = l.nameOf(line[0].ID, key.Namespace)
	}
	for m := range s.Members() {
		if m.Standing == spread.Rolling {
			all.RollingNow = append(all.RollingNow, l.nameOf(m.ID, key.Namespace))
		}
	}
	slices.Sort(all.RollingNow)
	all.RollingNow = all.RollingNow[:min(len(all.RollingNow), fewNames)]
	return all
}

// fewNames is how many names are listed where there may be many.
const fewNames = 3

// nameOf is how a user of the namespace calls a workload on record.
func (v Serves) nameOf(id, namespace string) string {
	key, err := kube.ParseID(id)
	if err != nil {
		return id
	}
	if key.Namespace != namespace {
		return key.String()
	}
	return key.Short()
}

// ofWorkload are the inputs on their way that the workload waits for, or gets now.
func (l *lineup) ofWorkload(key kube.Key, e record.Entry) []Spreading {
	var all []Spreading
	for id, given := range e.Inputs {
		if at := standing(e, given); at == spread.Has || at == spread.Proven {
			continue
		}
		if s := l.of(key, id, given); s.Users > 1 && s.isOpen() {
			all = append(all, s)
		}
	}
	sorting.By(all, func(a, b Spreading) int { return cmp.Compare(a.Input, b.Input) })
	return all
}

// ofSource is how a ConfigMap or Secret spreads, nil when it reached every workload.
func (l *lineup) ofSource(namespace string, id input.ID) []Spreading {
	s := l.of(kube.Key{Namespace: namespace}, id, record.Delivered{})
	if !s.isOpen() || s.Users < 2 {
		return nil
	}
	return []Spreading{s}
}

// precise names what exactly ends a state: the place in line, the time at which the window
// opens, the version that is stopped.
func (l *lineup) precise(r Report, key kube.Key, e record.Entry) Report {
	switch {
	case r.From != FromRecord:
	case r.Reason == string(input.AwaitsTurn):
		var last Spreading // it needs its turn in all of them
		for _, s := range l.ofWorkload(key, e) {
			if s.Place > last.Place {
				last = s
			}
		}
		if last.Place > 0 {
			r.Ends = fmt.Sprintf("its turn: %s of %d", ordinal(last.Place), last.InLine)
		}
	case r.Reason == string(input.VersionStopped):
		var names []string
		for _, s := range l.stoppedIn(key.Namespace, e.Inputs) {
			if id, err := input.ParseID(s.Input); err == nil && e.Inputs[id].Due != "" {
				names = append(names, "lockstep resume "+l.resumable(id, key)+" -n "+key.Namespace)
			}
		}
		if len(names) > 0 {
			r.Ends = "another version, or " + strings.Join(slices.Compact(names), " and ")
		}
	case r.Reason == string(input.AwaitsWindow) && r.Next != nil:
		r.Ends += " at " + r.Next.UTC().Format("2006-01-02 15:04 MST")
	}
	return r
}

// resumable is what a user names to resume a stopped version: the source, or the workload that
// waits for an image.
func (l *lineup) resumable(id input.ID, key kube.Key) string {
	if id.IsSource() {
		return id.String()
	}
	return key.Short()
}

// ordinal is a number as a place: 1st, 2nd, 3rd, 4th, 11th, 21st.
func ordinal(n int) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}
