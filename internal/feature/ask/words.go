package ask

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
)

// nothing stands for a value that isn't there.
const nothing = "-"

// onRecordOnly follows a version that the controller has on record, for a user who can't read the
// current one.
const onRecordOnly = " (on record; " + NotVisible + ")"

// Age is how long ago a time was, such as "5m".
func Age(t *time.Time, now time.Time) string {
	if t == nil {
		return nothing
	}
	return duration.HumanDuration(max(0, now.Sub(*t)))
}

// Until is the duration until a time, such as "in 5m".
func Until(t *time.Time, now time.Time) string {
	if t == nil {
		return nothing
	}
	return "in " + duration.HumanDuration(max(0, t.Sub(now)))
}

// orNothing is the text, or a dash for an empty one.
func orNothing(text string) string {
	if text == "" {
		return nothing
	}
	return text
}

// Words describes the controller's state.
func (c Controller) Words(now time.Time) string {
	words := c.State
	if c.Since != nil {
		words += " for " + Age(c.Since, now) + " (since " + c.Since.UTC().Format(time.RFC3339) + ")"
	}
	if c.Version != "" {
		words += ", version " + c.Version
	}
	if c.Note != "" {
		words += "; " + c.Note
	}
	return words
}

// Words describes a decision, and where it is known from.
func (s Report) Words(now time.Time) string {
	words := s.Reason
	if s.Since != nil {
		words += " for " + Age(s.Since, now)
	}
	if s.Message != "" {
		words += ": " + s.Message
	}
	return words + s.FromWords()
}

// FromWords says where a decision is known from, unless it is on record. It starts with a space.
func (s Report) FromWords() string {
	switch s.From {
	case FromEvent:
		return " (from the newest event)"
	case FromEstimate:
		return " (an estimate, not the controller's decision)"
	case FromFlags:
		return " (from the arguments of the controller's Deployment)"
	}
	return ""
}

// NextWords explains what happens next and when, or what the user has to do.
func (e *Explanation) NextWords(now time.Time) string {
	next, c := e.NextReport(), e.Controller
	if next.IsInStep() && c.State != Down && len(e.Stops) > 0 {
		return "nothing, until an input changes and the stop ends (lockstep resume)"
	}
	return next.nextWords(c, now)
}

func (s Report) nextWords(c Controller, now time.Time) string {
	switch {
	case s.Reason == string(input.NextJob):
		return "the next Job loads it"
	case c.State == Down && s.Ends == "":
		return "nothing while the controller is down"
	case s.IsInStep(), s.From == FromEstimate && s.isDelivered():
		return "nothing, until an input changes"
	case s.Reason == string(input.Reloaded) && s.From == FromEstimate:
		return "the rollout, at the controller's next check"
	case c.State == Down && s.Ends != "":
		return "nothing while the controller is down; the workload waits for " + s.Ends
	case s.Next != nil && !s.Next.After(now):
		return "the controller is about to check again; the workload waits for " + s.Ends
	case s.Next != nil:
		return "the controller checks again " + Until(s.Next, now) + "; the workload waits for " + s.Ends
	case s.Ends != "":
		return "the workload waits for " + s.Ends
	}
	return "nothing is planned"
}

// WaitingWords is since when a change isn't delivered, empty when none waits.
func (e *Explanation) WaitingWords(now time.Time) string {
	next := e.NextReport()
	if next.PendingSince == nil || next.IsInStep() {
		return ""
	}
	return "the oldest pending change was seen " + Age(next.PendingSince, now) + " ago"
}

// EstimateWords describes the estimate, which isn't nil.
func (e *Explanation) EstimateWords() string {
	words := e.Estimate.Reason
	if e.Estimate.Message != "" {
		words += ": " + e.Estimate.Message
	}
	if e.Estimate.isDelivered() {
		return words + "; this isn't on record yet"
	}
	return words + "; the controller hasn't decided yet"
}

// isDelivered reports whether the versions are delivered, so that the controller only has to record them.
func (s Report) isDelivered() bool {
	switch input.Reason(s.Reason) {
	case input.DeliveredBefore, input.DeliveredByRollout, input.Released:
		return true
	default:
		return false
	}
}

// NoUsers is why a source has no workload.
func (e *SourceExplanation) NoUsers() string {
	if e.RecordHidden {
		return "the list of workloads that follow it is " + NotVisible
	}
	return "the record doesn't list a workload that follows it"
}

// NoWorkload is why a list is empty.
func (s Scope) NoWorkload() string {
	switch {
	case s.Selector != nil && !s.Selector.Empty():
		return "Lockstep doesn't follow any workload with these labels"
	case s.Namespace == "":
		return "Lockstep doesn't follow any workload, and no workload requests it (" + settings.Reload + ": auto)"
	}
	return "Lockstep doesn't follow any workload in this namespace, and no workload requests it (" + settings.Reload + ": auto); use -A to list all namespaces"
}

// NextReport is the decision whose end matters to the user: the estimate, where the controller has
// decided something else before.
func (e *Explanation) NextReport() Report {
	if e.Estimate != nil && e.State.Reason != NotOnRecord {
		return *e.Estimate
	}
	return e.State
}

// Words describes an operator's stop. The front end adds the command that ends it.
func (s Stop) Words(now time.Time) string {
	words := "every automatic change"
	if s.Namespace != "" {
		words += " in namespace " + s.Namespace
	}
	if s.Since != nil {
		words += ", for " + Age(s.Since, now)
	}
	if s.Reason != "" {
		words += ": " + s.Reason
	}
	return words
}

// Words describes a version that failed.
func (v VersionStop) Words(now time.Time) string {
	words := strings.TrimSpace(v.Input+" "+v.Version) + " failed on " + strings.Join(v.FailedOn, ", ")
	if v.Since != nil {
		words += " " + Age(v.Since, now) + " ago"
	}
	if v.Waiting > 0 {
		words += fmt.Sprintf("; workloads that keep an earlier version: %d", v.Waiting)
	}
	return words
}

// Words describes how a change reaches the workloads.
func (s Spreading) Words() string {
	words := fmt.Sprintf("%s: %d of %d healthy with it, %d rolling", s.Input, s.Healthy, s.Users, s.Rolling)
	details := strings.Join(s.RollingNow, ", ")
	if len(s.RollingNow) > 0 && s.Rolling > len(s.RollingNow) {
		details += " and others"
	}
	if s.AtMost > 0 {
		details = strings.TrimPrefix(fmt.Sprintf("%s; at most %d", details, s.AtMost), "; ")
	}
	if details != "" {
		words += " (" + details + ")"
	}
	words += fmt.Sprintf(", %d waiting", s.Waiting)
	if s.Place > 0 {
		words += fmt.Sprintf("; this one is number %d of %d in line", s.Place, s.InLine)
	}
	switch {
	case s.Awaits != "":
		words += "; " + s.Awaits
	case s.Next != "" && s.Place != 1:
		words += "; next is " + s.Next
	}
	return words
}

// Words describes a maintenance window.
func (w Window) Words(now time.Time) string {
	state := "open"
	if w.Opens != nil {
		state = "closed, opens " + Until(w.Opens, now) + " (" + w.Opens.UTC().Format(time.RFC3339) + ")"
	}
	return fmt.Sprintf("%s: %s, %s", state, w.Text, w.On)
}

// NowWords is the current version of an input, and what blocks it.
func (u Use) NowWords() string {
	words := orNothing(u.Current)
	switch {
	case u.Hidden != "" && u.Current != "":
		words += onRecordOnly
	case u.Hidden != "":
		words = NotVisible
	case !u.Followed:
		words = "not followed"
	}
	if u.Note != "" {
		words += " " + u.Note
	}
	return words
}

// RegistryWords is what the registry last answered, as far as the record and events tell.
func (e *ImageExplanation) RegistryWords(now time.Time) string {
	for i := range e.Containers {
		if s := &e.Containers[i].State; s.Reason == string(input.Unresolved) {
			return s.Words(now)
		}
	}
	switch last := e.Problem(); {
	case last != nil:
		return last.Reason + " " + Age(&last.At, now) + " ago, and may be over: " + last.Note
	case e.RecordHidden || e.EventsHidden:
		return "its answer is " + NotVisible
	case !e.isAnswered():
		return "according to the record and events, the controller hasn't queried it"
	}
	return "it answered, and the events that still exist don't report a problem"
}

// Pin is the current tag and digest, as far as they are known: of one that isn't delivered yet only
// the beginning of the digest is on record.
func (u *ImageUse) Pin() string {
	switch {
	case u.Digest == "", !u.InStep():
		return u.Current
	case u.Tag == "":
		return u.Digest
	}
	return u.Tag + "@" + u.Digest
}

// HealthyWords is the tag and the beginning of the digest with which the workload was last healthy.
func (u *ImageUse) HealthyWords() string { return images.Short(u.Healthy) }

// QuarantineWords is what keeps a digest from the container.
func (u *ImageUse) QuarantineWords() string {
	words := ""
	if len(u.Quarantined) > 0 {
		words = "failed for this workload: " + strings.Join(u.Quarantined, ", ")
	}
	if u.Contested {
		words = join(words, "another writer keeps restoring its image")
	}
	return orNothing(words)
}

// NowWords is the current version of the source for one of its users.
func (e SourceExplanation) NowWords(u SourceUser) string {
	if e.Hidden == "" || u.Current == versionNotKnown {
		return orNothing(u.Current)
	}
	return u.Current + onRecordOnly
}

// WrittenWords is when an owner of an input's content last wrote the object, and which one.
func (u Use) WrittenWords(now time.Time) string {
	return orNothing(writtenBy(u.WrittenBy, u.WrittenAt, now))
}

// WrittenWords is when an owner of a source's content last wrote it, and which one.
func (e SourceExplanation) WrittenWords(now time.Time) string {
	if e.WrittenBy == "" {
		return ByUnknown
	}
	return writtenBy(e.WrittenBy, e.WrittenAt, now)
}

func writtenBy(writer string, at *time.Time, now time.Time) string {
	if writer == "" {
		return ""
	}
	return Age(at, now) + " ago by " + writer
}

// ChangedWords describes what changed with a revision.
func (r Revision) ChangedWords() string {
	if r.First {
		return "(the oldest revision)"
	}
	parts := make([]string, 0, len(r.Changed)+1)
	for _, c := range r.Changed {
		parts = append(parts, c.Words())
	}
	if r.Again {
		parts = append(parts, "an earlier revision again")
	}
	if len(parts) == 0 {
		return "nothing in the template"
	}
	return strings.Join(parts, ", ")
}

// Words is one change. Image digests are shortened; those of inputs are short already.
func (c Change) Words() string {
	switch {
	case c.From == "" && c.To == "":
		return c.What
	case c.From == "":
		return c.What + " -> " + images.Short(c.To)
	case c.To == "":
		return c.What + " " + images.Short(c.From) + " -> not shown"
	}
	return fmt.Sprintf("%s %s -> %s", c.What, images.Short(c.From), images.Short(c.To))
}
