package spread_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// change is one of the changes that the tests spread.
func change(name string) input.Change {
	return input.Change{Namespace: "shop", ID: input.ConfigMap(name), Version: "77ab01c9de"}
}

// now is the time of the tests, wait how long a workload waits for a healthy one to begin, and proof how long a stuck
// rollout keeps its place.
var now = time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)

const (
	wait  = time.Minute
	proof = 10 * time.Minute
)

// parse makes a spread of members such as "shop/a:ready", "blog/b:rolling,unable" or
// "shop/c:due,first"; "shop/*9:has" are nine of them. "shop/d:due,24h" can begin in a day, "shop/e:ready,-2m" could
// have two minutes ago, and of "shop/f:due,unknown" that isn't known. The others can begin now.
func parse(t *testing.T, name, text string) *spread.Spread {
	t.Helper()
	standings := map[string]spread.Standing{
		"has": spread.Has, "due": spread.Due, "ready": spread.Ready,
		"held": spread.Held, "rolling": spread.Rolling, "proven": spread.Proven, "failed": spread.Failed,
	}
	s := &spread.Spread{Change: change(name), Steps: true}
	for i, field := range strings.Fields(text) {
		id, words, _ := strings.Cut(field, ":")
		namespace, member, _ := strings.Cut(id, "/")
		m := spread.Member{ID: id, Namespace: namespace, Able: true, Healthy: true, Begins: now}
		for word := range strings.SplitSeq(words, ",") {
			standing, known := standings[word]
			in, err := time.ParseDuration(word)
			switch {
			case err == nil:
				m.Begins = now.Add(in)
			case word == "unknown", word == "held":
				m.Standing, m.Begins = standing, time.Time{}
			case known:
				m.Standing = standing
			case word == "first":
				m.First = true
			case word == "unable":
				m.Able, m.Healthy = false, false
			case word == "unsettled":
				m.Healthy = false
			case word == "atonce":
				m.AtOnce = true
			default:
				t.Fatalf("%q: unknown word %q", field, word)
			}
		}
		var many int
		if n, _ := fmt.Sscanf(member, "*%d", &many); n == 0 {
			s.Set(m)
		}
		for j := range many {
			m.ID = fmt.Sprintf("%s/%d-%d", namespace, i, j)
			s.Set(m)
		}
	}
	return s
}

func TestRoom(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		others string
		limit  int
		within int // the limit of the member's namespace
		plain  bool
		member string
		want   bool
	}{
		"Few":                {"three users go together", "shop/b:rolling shop/c:rolling", 20, 0, false, "", true},
		"FewBeyondBudget":    {"the budget counts for few users too", "shop/b:rolling shop/c:rolling", 2, 0, false, "", false},
		"One":                {"the first of many", "shop/*9:ready", 20, 0, false, "", true},
		"Second":             {"the first one is not proven", "shop/b:rolling shop/*9:ready", 20, 0, false, "", false},
		"SecondStep":         {"two follow the first", "shop/b:proven shop/c:rolling shop/*9:ready", 20, 0, false, "", true},
		"SecondStepFull":     {"only two follow the first", "shop/b:proven shop/*2:rolling shop/*9:ready", 20, 0, false, "", false},
		"SecondStepHalf":     {"both of the second step have to be proven", "shop/*2:proven shop/c:rolling shop/*9:ready", 20, 0, false, "", false},
		"ThirdStep":          {"four in the third step", "shop/*3:proven shop/*3:rolling shop/*9:ready", 20, 0, false, "", true},
		"ThirdStepFull":      {"only four in the third step", "shop/*3:proven shop/*4:rolling shop/*9:ready", 20, 0, false, "", false},
		"LastStep":           {"a step of 16 is below the budget", "shop/*15:proven shop/*16:rolling shop/*9:ready", 20, 0, false, "", false},
		"Flow":               {"the next step would exceed the budget, so steps end", "shop/*31:proven shop/*19:rolling shop/*9:ready", 20, 0, false, "", true},
		"Budget":             {"the budget still counts", "shop/*31:proven shop/*20:rolling shop/*9:ready", 20, 0, false, "", false},
		"NoBudget":           {"steps go on without a budget", "shop/*31:proven shop/*31:rolling shop/*9:ready", 0, 0, false, "", true},
		"NoBudgetFull":       {"steps go on without a budget", "shop/*31:proven shop/*32:rolling shop/*9:ready", 0, 0, false, "", false},
		"Plain":              {"no steps, only the budget", "shop/*19:rolling shop/*9:ready", 20, 0, true, "", true},
		"PlainBudget":        {"no steps, only the budget", "shop/*20:rolling shop/*9:ready", 20, 0, true, "", false},
		"Unlimited":          {"no steps and no budget", "shop/*500:rolling", 0, 0, true, "", true},
		"Namespace":          {"its namespace allows one", "shop/b:proven shop/c:rolling shop/*9:ready", 20, 1, false, "", false},
		"OtherNamespace":     {"another namespace's rollouts don't count", "shop/b:proven blog/c:rolling shop/*9:ready", 20, 1, false, "", true},
		"NamespaceFew":       {"its namespace's limit counts for few users too", "shop/b:rolling", 20, 1, false, "", false},
		"NamespaceRaises":    {"a namespace can't raise the budget", "shop/*5:rolling", 5, 50, true, "", false},
		"First":              {"another one is to be the first", "shop/b:due,first shop/*9:ready", 20, 0, false, "", false},
		"FirstItself":        {"it is the first", "shop/b:due shop/*9:ready", 20, 0, false, "first", true},
		"FirstRolls":         {"the first one is not proven", "shop/b:rolling,first shop/*9:ready", 20, 0, false, "", false},
		"FirstProven":        {"the first one is proven", "shop/b:proven,first shop/*9:ready", 20, 0, false, "", true},
		"FirstUnable":        {"the first one can't prove anything", "shop/b:due,first,unable shop/*9:ready", 20, 0, false, "", true},
		"FirstHeld":          {"the first one waits for a user", "shop/b:held,first shop/*9:ready", 20, 0, false, "", true},
		"FirstBehind":        {"the first one waits for another workload, which may be this one", "shop/b:due,unknown,first shop/*9:ready", 20, 0, false, "", true},
		"FirstInADay":        {"a user chose the first one, so its quiet window counts", "shop/b:due,24h,first shop/*9:ready", 20, 0, false, "", false},
		"FirstElsewhere":     {"a user chose the first one, so its turn in another change counts", "shop/b:ready,-1h,first shop/*9:ready", 20, 0, false, "", false},
		"HealthyInADay":      {"the next one that can begin goes first", "shop/b:due,24h shop/*9:due,24h", 20, 0, false, "", true},
		"Unable":             {"one that can prove it goes first", "shop/b:due shop/*9:ready,unable", 20, 0, false, "unable", false},
		"UnableProven":       {"it takes no step", "shop/b:proven shop/*2:rolling shop/*9:ready,unable", 20, 0, false, "unable", true},
		"UnableBudget":       {"it takes a place of the budget", "shop/b:proven shop/*20:rolling,unable", 20, 0, false, "unable", false},
		"UnableTakesNoStep":  {"those that prove nothing don't fill a step", "shop/b:proven shop/*9:rolling,unable", 20, 0, false, "", true},
		"UnableInADay":       {"a fix reaches it though no healthy workload can begin soon", "shop/b:due,24h shop/*9:ready,unable", 20, 0, false, "unable", true},
		"UnableSoon":         {"a healthy one begins in half a minute", "shop/b:due,30s shop/*9:ready,unable", 20, 0, false, "unable", false},
		"UnableWaited":       {"it waits for a minute, and the healthy one waits in another change", "shop/b:ready shop/*9:ready,unable", 20, 0, false, "unable,-1m", true},
		"UnableStillWaits":   {"it has waited for less", "shop/b:ready shop/*9:ready,unable", 20, 0, false, "unable,-59s", false},
		"UnableAndRolling":   {"it has waited for long, and a proof is on its way", "shop/b:rolling shop/*9:ready", 20, 0, false, "unable,-54m", false},
		"UnableForTooLong":   {"it has waited for several rollouts, such as those of earlier versions", "shop/b:rolling shop/*9:ready", 20, 0, false, "unable,-55m", true},
		"UnableAndFirst":     {"it doesn't wait for one that a user chose", "shop/b:due,24h,first shop/*9:ready", 20, 0, false, "unable", true},
		"UnableFirstSoon":    {"the one that a user chose begins in half a minute", "shop/b:due,30s,first shop/*9:ready", 20, 0, false, "unable", false},
		"UnableBehind":       {"the healthy one waits for another workload", "shop/b:due,unknown shop/*9:ready,unable", 20, 0, false, "unable", true},
		"UnablesBeforeProof": {"those that prove nothing don't fill the first step", "shop/*9:rolling,unable shop/*9:ready", 20, 0, false, "", true},
		"UnablesProveNone":   {"one that recovered with the change isn't a proof", "shop/*9:has,unable shop/b:rolling shop/*9:ready", 20, 0, false, "", false},
		"NobodyAble":         {"nobody can prove anything: only the budget", "shop/*9:rolling,unable", 20, 0, false, "unable", true},
		"OnlyHeldAble":       {"who waits for a user proves nothing soon", "shop/b:held shop/*9:rolling,unable", 20, 0, false, "unable", true},
		"Unsettled":          {"it may be the first as soon as it is healthy", "shop/*9:due", 20, 0, false, "unsettled", false},
		"UnsettledTooLong":   {"it was available for a moment, again and again, and takes the only step", "shop/*9:due,24h", 20, 0, false, "unsettled,-1m", true},
		"UnsettledBesideIt":  {"it takes a step, because it may be healthy", "shop/b:rolling shop/*9:due,24h", 20, 0, false, "unsettled,-1m", false},
		"UnsettledLater":     {"only the first one has to be healthy before", "shop/b:proven shop/*9:due", 20, 0, false, "unsettled", true},
		"AtOnce":             {"its source skips the steps", "shop/*9:rolling", 20, 0, false, "atonce", true},
		"AtOnceBudget":       {"its source doesn't skip the budget", "shop/*20:rolling", 20, 0, false, "atonce", false},
		"FailedLeavesItsSum": {"a failed one proves nothing, and another takes its place", "shop/b:failed shop/*9:ready", 20, 0, false, "", true},
		"FreedLeavesItsSum":  {"a freed one proves nothing, and another takes its place", "shop/b:has shop/*9:ready", 20, 0, false, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := parse(t, "app", "shop/a:"+strings.TrimPrefix(tc.member+",ready", ",")+" "+tc.others)
			s.Steps = !tc.plain
			m, _ := s.Member("shop/a")
			limits := spread.Limits{Rolling: tc.limit, Wait: wait, Proof: proof, Now: now, In: func(namespace string) int {
				if namespace == m.Namespace {
					return tc.within
				}
				return 0
			}}
			if got := s.Room(m, limits); got != tc.want {
				t.Errorf("%t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, members string
		want            []string
	}{
		"Names":        {"one namespace, by name", "shop/c:ready shop/a:ready shop/b:ready", []string{"shop/a", "shop/b", "shop/c"}},
		"OnlyReady":    {"others don't wait for a turn", "shop/c:due shop/a:due,unknown shop/b:ready shop/d:held", []string{"shop/b"}},
		"First":        {"a user wants it to be the first", "shop/c:ready,first shop/a:ready", []string{"shop/c", "shop/a"}},
		"Alternate":    {"namespaces take turns", "shop/a:ready shop/b:ready blog/y:ready blog/z:ready", []string{"blog/y", "shop/a", "blog/z", "shop/b"}},
		"ServedLess":   {"the namespace that was served less is next", "blog/x:proven blog/y:rolling blog/z:ready shop/a:ready shop/b:ready", []string{"shop/a", "shop/b", "blog/z"}},
		"FailedServed": {"a failed one was served", "blog/x:failed blog/z:ready shop/a:ready shop/b:ready", []string{"shop/a", "blog/z", "shop/b"}},
		"Large":        {"a small namespace isn't behind a large one", "blog/*3:ready shop/a:ready", []string{"blog/0-0", "shop/a", "blog/0-1", "blog/0-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, m := range parse(t, "app", tc.members).Line() {
				got = append(got, m.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		app, tls string // the members of two changes
		limit    int
		plain    bool
		want     []string
	}{
		"One":         {"the first step", "shop/*9:has shop/b:ready shop/a:ready", "", 20, false, []string{"shop/a"}},
		"Step":        {"two at once", "shop/a:proven shop/*9:due shop/b:ready shop/c:ready shop/d:ready", "", 20, false, []string{"shop/b", "shop/c"}},
		"Budget":      {"up to the budget", "shop/*2:rolling shop/b:ready shop/c:ready shop/d:ready", "", 4, true, []string{"shop/b", "shop/c"}},
		"Both":        {"room in both changes", "shop/a:ready", "shop/a:ready", 1, false, []string{"shop/a"}},
		"AllOrNone":   {"no room in one of two changes, so it takes no place of the other", "shop/a:ready shop/b:ready", "shop/a:ready shop/z:rolling", 1, false, []string{"shop/b"}},
		"NotReady":    {"it isn't ready in one of its changes", "shop/a:ready", "shop/a:due,unknown", 1, false, nil},
		"Able":        {"the healthy one can begin now, so the other one doesn't overtake it", "shop/a:ready,unable,-9m shop/*9:due,24h shop/b:ready", "", 20, false, []string{"shop/b"}},
		"Overdue":     {"another rollout got stuck, and this one could too", "shop/z:ready,unable,-10m shop/*9:due,24h shop/b:ready", "", 20, false, []string{"shop/z"}},
		"OverdueElse": {"the overdue one has no place in another change", "shop/a:ready,unable,-10m shop/*9:due,24h shop/b:ready", "shop/a:ready shop/z:rolling", 1, false, []string{"shop/b"}},
		"OverdueGoes": {"it has begun", "shop/a:rolling,unable shop/*9:due,24h shop/b:ready", "", 20, false, []string{"shop/b"}},
		"Longest":     {"a proof is on its way, and it has waited for several", "shop/a:rolling shop/z:ready,unable,-1h shop/*9:due,24h shop/b:ready", "", 20, false, []string{"shop/z"}},
		"AbleElse":    {"the healthy one has no place in another change, and the other one has waited", "shop/a:ready,unable,-1h shop/*9:due,24h shop/b:ready", "shop/b:ready shop/z:rolling", 1, false, []string{"shop/a"}},
		"Shared":      {"b lacks the place that a has, so c is next in the other change", "shop/a:ready shop/b:ready", "shop/b:ready shop/c:ready", 1, false, []string{"shop/a", "shop/c"}},
		"AtOnce":      {"only the one whose source skips the steps", "shop/*9:rolling shop/b:ready shop/c:ready,atonce", "", 20, false, []string{"shop/c"}},
		"NobodyWaits": {"nobody is ready", "shop/a:due shop/b:rolling", "", 20, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := []*spread.Spread{parse(t, "app", tc.app), parse(t, "tls", tc.tls)}
			for _, s := range all {
				s.Steps = !tc.plain
			}
			wants := func(id string) []*spread.Spread { return wantsOf(id, all) }
			limits := spread.Limits{Rolling: tc.limit, Wait: wait, Proof: proof, Now: now}
			got := spread.Admit(all, wants, limits)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if again := spread.Admit(all, wants, limits); !slices.Equal(got, again) {
				t.Errorf("asked again, it admits %v instead of %v", again, got)
			}
		})
	}
}

// TestAdmitChangesNothing: those that may start have not started, even if wants lists only the
// changes in which a workload waits.
func TestAdmitChangesNothing(t *testing.T) {
	t.Parallel()
	s := parse(t, "app", "shop/a:proven shop/*9:due shop/b:ready shop/c:ready shop/d:ready")
	waits := func(id string) []*spread.Spread {
		if m, _ := s.Member(id); m.Standing != spread.Ready {
			return nil
		}
		return []*spread.Spread{s}
	}
	spread.Admit([]*spread.Spread{s}, waits, spread.Limits{Rolling: 20})
	if n := s.Count().Rolling; n != 0 {
		t.Errorf("%d members are rolling, and none has asked", n)
	}
}

// wantsOf are the changes that the workload is a member of.
func wantsOf(id string, all []*spread.Spread) []*spread.Spread {
	return slices.DeleteFunc(slices.Clone(all), func(s *spread.Spread) bool {
		_, uses := s.Member(id)
		return !uses
	})
}

// TestAdmitNeverExceeds spreads random changes to the end: rollouts succeed, fail or lose their
// place in random order. No change ever has more rollouts than its budget and its step allow, and
// all of them come to an end.
func TestAdmitNeverExceeds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		admitToTheEnd(t, seed)
	}
}

func FuzzAdmit(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { admitToTheEnd(t, seed) })
}

func admitToTheEnd(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	all := make([]*spread.Spread, 1+random.IntN(3))
	for i := range all {
		all[i] = &spread.Spread{Change: change(fmt.Sprint(i)), Steps: random.IntN(4) > 0}
	}
	var ids []string
	for i := range 1 + random.IntN(40) {
		m := spread.Member{Namespace: fmt.Sprint(random.IntN(3)), Standing: spread.Ready, Able: random.IntN(3) > 0, First: random.IntN(9) == 0}
		m.Healthy, m.Begins = m.Able, now.Add(-time.Duration(random.IntN(90))*time.Second)
		if random.IntN(8) == 0 {
			m.Standing, m.Begins = spread.Due, now.Add(time.Duration(random.IntN(3))*time.Hour)
		}
		m.ID = fmt.Sprintf("%s/%d", m.Namespace, i)
		ids = append(ids, m.ID)
		all[random.IntN(len(all))].Set(m)
		all[random.IntN(len(all))].Set(m)
	}
	wants := func(id string) []*spread.Spread { return wantsOf(id, all) }
	limits := spread.Limits{Rolling: random.IntN(6), Wait: wait, Proof: proof, Now: now, In: func(namespace string) int { return len(namespace) * int(seed%3) }}
	for range 20 * len(ids) {
		for _, id := range spread.Admit(all, wants, limits) {
			set(all, id, spread.Rolling)
		}
		rolling := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !rolls(all, id) })
		if len(rolling) == 0 { // time opens a gate, or ends a wait
			if limits.Now = limits.Now.Add(30 * time.Minute); limits.Now.After(now.Add(4 * time.Hour)) {
				break
			}
			open(all, ids, limits.Now)
			continue
		}
		for _, s := range all {
			checkBounds(t, seed, s, ids, limits)
		}
		set(all, rolling[random.IntN(len(rolling))], []spread.Standing{spread.Proven, spread.Failed, spread.Has}[random.IntN(3)])
	}
	for _, s := range all {
		if left := s.Count(); left.Waiting+left.Rolling > 0 {
			t.Fatalf("seed %d: %+v is left", seed, left)
		}
	}
}

// open lets members whose gate has opened wait for their turn.
func open(all []*spread.Spread, ids []string, now time.Time) {
	for _, s := range all {
		for _, id := range ids {
			if m, _ := s.Member(id); m.Standing == spread.Due && !m.Begins.After(now) {
				m.Standing = spread.Ready
				s.Set(m)
			}
		}
	}
}

// checkBounds counts on its own.
func checkBounds(t *testing.T, seed uint64, s *spread.Spread, ids []string, limits spread.Limits) {
	t.Helper()
	var rolling, able, proven, users int
	in := map[string]int{}
	for _, id := range ids {
		m, uses := s.Member(id)
		if !uses {
			continue
		}
		users++
		switch m.Standing {
		case spread.Rolling:
			rolling++
			in[m.Namespace]++
			if m.Able {
				able++
			}
		case spread.Proven:
			proven++
		case spread.Has, spread.Due, spread.Ready, spread.Held, spread.Failed:
		}
	}
	if limits.Rolling > 0 && rolling > limits.Rolling {
		t.Fatalf("seed %d: %d roll, and %d may", seed, rolling, limits.Rolling)
	}
	for namespace, n := range in {
		if most := limits.In(namespace); most > 0 && n > most {
			t.Fatalf("seed %d: %d roll in a namespace of %d", seed, n, most)
		}
	}
	if s.Steps && users > spread.Together && able > proven+1 {
		t.Fatalf("seed %d: %d roll, and only %d are proven", seed, able, proven)
	}
}

func set(all []*spread.Spread, id string, to spread.Standing) {
	for _, s := range all {
		if m, uses := s.Member(id); uses {
			m.Standing = to
			s.Set(m)
		}
	}
}

func rolls(all []*spread.Spread, id string) bool {
	return slices.ContainsFunc(all, func(s *spread.Spread) bool {
		m, uses := s.Member(id)
		return uses && m.Standing == spread.Rolling
	})
}
