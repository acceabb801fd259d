package images

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

var now = time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)

func digest(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func pin(tag, digit string) Pin { return Pin{Tag: tag, Digest: digest(digit)} }

// observation is the spec app:1.*, of which 1.2 with the digest 2… is the newest.
func observation(t *testing.T, has string, change func(*Observation)) Observation {
	t.Helper()
	image, err := tagspec.ParseImage("app:1.*")
	if err != nil {
		t.Fatal(err)
	}
	reference, err := tagspec.ParseReference(has)
	if err != nil {
		t.Fatal(err)
	}
	o := Observation{Request: settings.ImageRequest{Container: "web", Image: image}, Template: Template{Has: reference}, Found: pin("1.2", "2"), Now: now}
	o.Memo.Request = requestSum("app:1.*", "")
	if change != nil {
		change(&o)
	}
	return o
}

func given(digit string) func(*Observation) {
	return func(o *Observation) { o.Delivered = versionOf(pin("", digit)) }
}

// unrecorded: the template shows a patch of ours, and the record only that one was due.
func unrecorded(o *Observation) {
	o.Template.Ours, o.Delivered = true, o.Delivered.Unknown()
}

// enforced: the workload does not want another writer's digest.
func enforced(o *Observation) {
	o.Enforced = true
	o.Memo.Request = o.request()
}

// failing is a rollout of 2… that failed, where 1… was healthy.
func failing(o *Observation) {
	given("2")(o)
	o.Trial.On, o.Trial.Health, o.Trial.HasPods, o.Memo.Healthy = true, health.Failed, true, pin("1.1", "1")
}

func both(changes ...func(*Observation)) func(*Observation) {
	return func(o *Observation) {
		for _, change := range changes {
			change(o)
		}
	}
}

type decideCase struct {
	reason string
	has    string
	change func(*Observation)
	want   Verdict // without the memos
	memo   string  // what is remembered when it is carried out, besides the request
}

func decideCases() map[string]decideCase {
	const tag = "app:1.2"
	ours := tag + "@" + digest("2")
	earlier := "app:1.1@" + digest("1")
	again := func(ago ...time.Duration) func(*Observation) {
		return func(o *Observation) {
			given("2")(o)
			for _, d := range ago {
				o.Memo.Again = append(o.Memo.Again, now.Add(-d))
			}
		}
	}
	unresolved := func(o *Observation) { o.Found = Pin{} }
	changed := Verdict{Standing: input.Due, Reason: input.Changed, To: pin("1.2", "2")}
	unpinned := Verdict{Standing: input.Due, Reason: input.Unpinned, To: pin("1.2", "2")}
	left := Verdict{Standing: input.Settled, Reason: input.Pinned, To: pin("1.2", "2")}
	forced := Verdict{Standing: input.Due, Reason: input.Enforced, To: pin("1.2", "2")}
	byHand := "app:1.0@" + digest("7")
	stays := Verdict{Standing: input.Settled, Reason: input.Accepted, To: pin("1.2", "2")}
	inStep := Verdict{Standing: input.Settled, Reason: input.InStep, To: pin("1.2", "2")}
	barred := func(v Verdict, by input.Reason) Verdict {
		v.Bar = by
		return v
	}
	return map[string]decideCase{
		"First":          {reason: "the annotation is the request", has: tag, want: unpinned},
		"FirstAgain":     {reason: "a controller that was stopped meanwhile asks again", has: tag, change: func(o *Observation) { o.Delivered = versionOf(pin("", "2")).Unknown() }, want: unpinned},
		"FirstOtherTag":  {reason: "a tag outside the spec", has: "app:2.0", want: unpinned},
		"FirstOtherRepo": {reason: "another repository, also with a digest", has: "side:1.2@" + digest("2"), want: unpinned},
		"FirstInPlace":   {reason: "the template has it", has: ours, want: Verdict{Standing: input.Record, Reason: input.Baseline, To: pin("1.2", "2")}},
		"FirstPinned":    {reason: "a digest that another writer chose stays until the tag moves", has: earlier, want: Verdict{Standing: input.Record, Reason: input.Pinned, To: pin("1.2", "2")}},
		"CutShort":       {reason: "we gave it, the process ended before that was on record, and the tag moved meanwhile", has: earlier, change: both(given("2"), unrecorded), want: Verdict{Standing: input.Due, Reason: input.Changed, To: pin("1.2", "2")}},
		"RecordLost":     {reason: "without a record nothing is restarted", has: earlier, change: func(o *Observation) { o.Template.Ours = true }, want: Verdict{Standing: input.Record, Reason: input.Pinned, To: pin("1.2", "2")}},
		"FirstNoTag":     {reason: "so does one without a tag", has: "app@" + digest("7"), want: Verdict{Standing: input.Record, Reason: input.Pinned, To: pin("1.2", "2")}},
		"Unanswered":     {reason: "nothing to compare with", has: tag, change: unresolved, want: Verdict{Standing: input.Settled, Reason: input.Unresolved}},

		"InStep":           {reason: "given what exists", has: ours, change: given("2"), want: inStep},
		"SameDigest":       {reason: "an unchanged digest rolls nothing", has: "app:1.1@" + digest("2"), change: given("2"), want: inStep},
		"Changed":          {reason: "the tag moved", has: earlier, change: given("1"), want: changed},
		"PinEnds":          {reason: "the pin ends when the tag moves", has: "app:1.0@" + digest("7"), change: given("1"), want: changed},
		"Rollout":          {reason: "another writer rolled it out", has: ours, change: given("1"), want: Verdict{Standing: input.Record, Reason: input.DeliveredByRollout, To: pin("1.2", "2")}},
		"PatchUnrecorded":  {reason: "our patch did, before the process ended", has: ours, change: both(given("1"), func(o *Observation) { o.Template.Shown = true }), want: Verdict{Standing: input.Record, Reason: input.DeliveredBefore, To: pin("1.2", "2")}},
		"UndoneUnrecorded": {reason: "and it was undone meanwhile", has: earlier, change: both(given("1"), func(o *Observation) { o.DeliveredBefore = true }), want: Verdict{Standing: input.Record, Reason: input.DeliveredBefore, To: pin("1.2", "2")}},
		"PinnedByHand":     {reason: "a person chose another one of it", has: "app:1.0@" + digest("7"), change: given("2"), want: left},
		"ChangedAndBack":   {reason: "what was noted of another digest ends", has: earlier, change: both(given("1"), func(o *Observation) { o.Memo.Again, o.Memo.Accepted = []time.Time{now}, true }), want: changed},

		"Unpinned":        {reason: "another writer put the tag back", has: tag, change: given("2"), want: unpinned, memo: "again=1794711600"},
		"UnpinnedTwice":   {reason: "the second time", has: tag, change: again(time.Minute), want: unpinned, memo: "again=1794711540,1794711600"},
		"Contested":       {reason: "the third time within an hour", has: tag, change: again(59*time.Minute, time.Minute), want: barred(unpinned, input.Contested), memo: "again=1794708060,1794711540,1794711600;contested"},
		"LongAgo":         {reason: "not within an hour", has: tag, change: again(time.Hour, time.Minute), want: unpinned, memo: "again=1794711540,1794711600"},
		"StaysContested":  {reason: "not only for an hour", has: tag, change: both(given("2"), func(o *Observation) { o.Memo.Contested = true }), want: barred(unpinned, input.Contested), memo: "again=1794711600;contested"},
		"ContestEnds":     {reason: "the digest changed", has: tag, change: both(given("1"), func(o *Observation) { o.Memo.Contested = true }), want: changed},
		"ContestEndsToo":  {reason: "the annotation changed", has: tag, change: both(given("2"), func(o *Observation) { o.Memo.Contested, o.Memo.Request = true, "other" }), want: unpinned, memo: "again=1794711600"},
		"ContestReleased": {reason: "a person allows it again", has: tag, change: both(again(2*time.Minute, time.Minute), func(o *Observation) { o.Memo.Contested, o.Released = true, true }), want: unpinned, memo: "again=1794711600"},

		"Enforced":            {reason: "a person's digest does not stay", has: byHand, change: both(given("2"), enforced), want: forced, memo: "again=1794711600"},
		"EnforcedFirst":       {reason: "also at the first look: the annotation is the request", has: byHand, change: enforced, want: forced},
		"EnforcedInStep":      {reason: "the digest counts, and not its tag", has: "app:1.1@" + digest("2"), change: both(given("2"), enforced), want: inStep},
		"EnforcedUnanswered":  {reason: "nothing to replace it by", has: byHand, change: both(given("2"), enforced, unresolved), want: Verdict{Standing: input.Settled, Reason: input.Unresolved}},
		"EnforcedContested":   {reason: "two writers must not go on for ever", has: byHand, change: both(again(2*time.Minute, time.Minute), enforced), want: barred(forced, input.Contested), memo: "again=1794711480,1794711540,1794711600;contested"},
		"EnforcedQuarantined": {reason: "what failed here is not what a person's choice is replaced by", has: byHand, change: both(given("2"), enforced, func(o *Observation) { o.Memo = o.Memo.withBad(digest("2")) }), want: barred(forced, input.Quarantined), memo: "again=1794711600;bad=22222222222222222222"},
		"EnforcedReleased":    {reason: "a person accepts what was reverted", has: byHand, change: both(given("2"), enforced, func(o *Observation) { o.Released, o.Reverted = true, true }), want: stays, memo: "accepted"},
		"EnforcedAccepted":    {reason: "and it stays", has: byHand, change: both(given("2"), enforced, func(o *Observation) { o.Memo.Accepted = true }), want: stays, memo: "accepted"},
		"EnforcedLater":       {reason: "who sets the annotation asks for the digest, whatever was accepted or contested before", has: byHand, change: both(given("2"), func(o *Observation) { o.Memo.Accepted, o.Memo.Contested, o.Enforced = true, true, true }), want: forced, memo: "again=1794711600"},
		"EnforcedNoMore":      {reason: "and who takes it away leaves the digest to others", has: byHand, change: both(given("2"), enforced, func(o *Observation) { o.Enforced = false }), want: left},

		"Released": {reason: "what was reverted is accepted without a rollout", has: tag, change: both(given("2"), func(o *Observation) { o.Released, o.Reverted = true, true }), want: stays, memo: "accepted"},
		"Accepted": {reason: "and stays", has: tag, change: both(given("2"), func(o *Observation) { o.Memo.Accepted = true }), want: stays, memo: "accepted"},
		"Observed": {reason: "what was observed counts as given", has: tag, change: func(o *Observation) { o.Observed = true }, want: unpinned, memo: "accepted"},

		"Healthy":           {reason: "what runs well is noted", has: ours, change: both(given("2"), func(o *Observation) { o.Trial.On, o.Trial.Health, o.Trial.HasPods = true, health.Done, true }), want: Verdict{Standing: input.Settled, Reason: input.InStep, To: pin("1.2", "2"), Proven: true}, memo: "ok=1.2@" + strings.Repeat("2", 64)},
		"NoPods":            {reason: "no pod proves nothing", has: ours, change: both(given("2"), func(o *Observation) { o.Trial.On, o.Trial.Health = true, health.Done }), want: inStep},
		"PutBack":           {reason: "the rollout failed, and the one before was healthy", has: ours, change: failing, want: Verdict{Standing: input.Due, Reason: input.PutBack, To: pin("1.1", "1"), Failed: true}, memo: "ok=1.1@" + strings.Repeat("1", 64) + ";bad=22222222222222222222"},
		"PutBackUnanswered": {reason: "also while no registry answers", has: ours, change: both(failing, unresolved), want: Verdict{Standing: input.Due, Reason: input.PutBack, To: pin("1.1", "1"), Failed: true}, memo: "ok=1.1@" + strings.Repeat("1", 64) + ";bad=22222222222222222222"},
		"Mixed":             {reason: "configuration came with it", has: ours, change: both(failing, func(o *Observation) { o.Trial.Mixed = true }), want: Verdict{Standing: input.Settled, Reason: input.InStep, To: pin("1.2", "2"), Failed: true}, memo: "ok=1.1@" + strings.Repeat("1", 64)},
		"NoneHealthy":       {reason: "none is known that was healthy", has: ours, change: both(failing, func(o *Observation) { o.Memo.Healthy = Pin{} }), want: Verdict{Standing: input.Settled, Reason: input.InStep, To: pin("1.2", "2"), Failed: true}},
		"FailedToo":         {reason: "what was put back fails as well", has: ours, change: both(failing, func(o *Observation) { o.Memo.Healthy = pin("1.2", "2") }), want: Verdict{Standing: input.Settled, Reason: input.InStep, To: pin("1.2", "2"), Failed: true}, memo: "ok=1.2@" + strings.Repeat("2", 64)},
		"FailedAndNext":     {reason: "the next digest is tried", has: ours, change: both(failing, func(o *Observation) { o.Found = pin("1.3", "3") }), want: Verdict{Standing: input.Due, Reason: input.Changed, To: pin("1.3", "3"), Failed: true}, memo: "ok=1.1@" + strings.Repeat("1", 64) + ";bad=22222222222222222222"},
		"FailedByOthers":    {reason: "another writer changed the template since", has: ours, change: both(failing, func(o *Observation) { o.Trial.On = false }), want: inStep, memo: "ok=1.1@" + strings.Repeat("1", 64)},
		"Quarantined":       {reason: "its rollout failed here", has: earlier, change: both(given("1"), func(o *Observation) { o.Memo = o.Memo.withBad(digest("2")) }), want: barred(changed, input.Quarantined), memo: "bad=22222222222222222222"},
		"QuarantinedTag":    {reason: "also by its tag", has: tag, change: func(o *Observation) { o.Memo = o.Memo.withBad(digest("2")) }, want: barred(unpinned, input.Quarantined), memo: "bad=22222222222222222222"},
		"QuarantineEnds":    {reason: "a person allows it again", has: earlier, change: both(given("1"), func(o *Observation) { o.Memo, o.Released = o.Memo.withBad(digest("2")), true }), want: changed},
		"QuarantineOfOther": {reason: "another digest is tried", has: earlier, change: both(given("1"), func(o *Observation) { o.Memo = o.Memo.withBad(digest("3")) }), want: changed, memo: "bad=33333333333333333333"},
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, tc := range decideCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observation(t, tc.has, tc.change)
			got := Decide(o)
			memo := strings.TrimPrefix(strings.TrimPrefix(got.MemoIfDelivered.String(), requestWord+"="+o.request()), ";")
			if memo != tc.memo {
				t.Errorf("%s: remembers %q, want %q", tc.reason, memo, tc.memo)
			}
			if read := ParseMemo(got.Memo.String()); read.String() != got.Memo.String() {
				t.Errorf("%s: %q is read as %q", tc.reason, got.Memo, read)
			}
			got.Memo, got.MemoIfDelivered = Memo{}, Memo{}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEveryReasonOfAnImageHasACase fails when a reason has none.
func TestEveryReasonOfAnImageHasACase(t *testing.T) {
	t.Parallel()
	tested := map[input.Reason]bool{
		input.RolloutFailed: true, // TestWarnings: it is told, and decides nothing
		input.ImagesOff:     true, // of a controller without this package
	}
	for _, tc := range decideCases() {
		tested[tc.want.Reason], tested[tc.want.Bar] = true, true
	}
	for _, e := range input.ImageExplanations() {
		if !tested[e.Reason] {
			t.Errorf("no case of TestDecide gives %s", e.Reason)
		}
	}
}

// TestMemoIsBounded: the record has no room for every digest that ever failed.
func TestMemoIsBounded(t *testing.T) {
	t.Parallel()
	var m Memo
	for i := range 100 {
		m = m.withBad("sha256:" + strings.Repeat(string(rune('a'+i%26)), 30+i))
	}
	if len(m.Bad) != mostBad {
		t.Errorf("%d digests are kept", len(m.Bad))
	}
	if strings.ContainsAny(m.String(), " ") {
		t.Errorf("%q has a space, by which the record tells its words apart", m)
	}
}
