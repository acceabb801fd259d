package histories_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// fleet is a world of many workloads on the small server, with the clock of testing/synctest.
type fleet struct {
	*agenda
	server  *server
	rules   histories.Fleet
	uses    map[string][]string
	crews   map[string]*crew
	people  map[string]*person
	process *process
	disk    disk
	began   time.Time

	// contents are those of the sources: "shop configmap/app". digests are those that they have
	// had, with the digest instead of the source.
	contents, digests map[string]string
	turns             int
	facts             []histories.FleetFact
	tells             bool
	trace             []string
	// reckless is true when Lockstep knows no bounds and gates.
	reckless bool
}

// newFleet makes the workloads that use these sources, and starts Lockstep.
func newFleet(h histories.History, uses map[string][]string, tells, reckless bool) *fleet {
	time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour))) // windows open by the clock
	f := &fleet{
		agenda: &agenda{random: rand.New(rand.NewPCG(h.Seed, 3))}, server: newServer(), rules: h.Fleet, uses: uses,
		crews: map[string]*crew{}, people: map[string]*person{}, disk: newDisk(), contents: map[string]string{}, digests: map[string]string{}, tells: tells, reckless: reckless,
	}
	f.server.written = append(f.server.written, f.note, func(writer string, old, now client.Object) {
		if d, ok := now.(*appsv1.Deployment); ok {
			f.crews[d.Namespace+"/"+d.Name].see(writer, old, now)
		}
		if f.process != nil {
			f.process.see(writer, old, now)
		}
	})
	for _, name := range histories.Namespaces() {
		f.people[name] = newPerson(f.server.as("person"), name, kube.Deployment())
		f.people[name].digests = map[string]string{}
		f.must(f.server.as("person").Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for _, a := range []histories.Action{{Source: histories.ConfigMap, On: "shop"}, {Source: histories.ConfigMap, On: "blog"}, {Source: histories.Secret, On: "shop"}, {Source: histories.Shared}} {
		f.set(a, "good")
	}
	for _, key := range slices.Sorted(maps.Keys(uses)) {
		f.create(key)
	}
	f.pass(time.Minute)
	f.began = time.Now()
	f.start()
	return f
}

func (f *fleet) must(err error) {
	if err != nil {
		panic(err)
	}
}

// create makes a workload with two pods.
func (f *fleet) create(key string) {
	namespace, name, _ := strings.Cut(key, "/")
	used := func(source, name string) string {
		if !slices.Contains(f.uses[key], source) {
			return ""
		}
		return name
	}
	d := testkit.Deployment(name, used(histories.ConfigMap, "app"), used(histories.Secret, "db"))
	delete(d.Annotations, settings.Quiet)
	*d.Spec.Replicas = 2
	d.Namespace = namespace
	if used(histories.Shared, "ca") != "" {
		ca := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}}}
		d.Spec.Template.Spec.Containers[0].EnvFrom = append(d.Spec.Template.Spec.Containers[0].EnvFrom, ca)
	}
	f.crews[key] = f.newCrew(client.ObjectKeyFromObject(d))
	f.must(f.server.as("person").Create(context.Background(), d))
}

func (f *fleet) start() {
	r := f.rules
	options := rollouts.SafeOptions()
	options.Quiet, options.Workers, options.MaxDelay = quiet, 1, cmp.Or(f.rules.MaxDelay, options.MaxDelay)
	if f.reckless {
		r = histories.Fleet{}
	}
	options.Safety = rollouts.Safety{Ramp: r.Ramp, MaxRolling: r.MaxRolling, StopAfter: r.StopAfter, Settle: r.Settle, Timeout: r.Timeout, PauseGrace: r.PauseGrace, Damping: r.Damping, MaxDamping: r.MaxDamping, Window: windowText(r.Window)}
	f.facts = append(f.facts, histories.FleetFact{At: time.Now(), Sight: histories.SightBack})
	f.process = start(&process{
		reckless: f.reckless,
		ends:     func() { f.facts = append(f.facts, histories.FleetFact{At: time.Now(), Sight: histories.SightLost}) },
		agenda:   f.agenda, server: f.server, kind: kube.Deployment(), options: options,
		records: newRecords(f.disk), began: f.began, cached: cached{digests: hashers()}, tells: f.tells, log: f.say,
	})
}

func (f *fleet) say(text string) {
	if f.tells && f.process != nil {
		f.trace = append(f.trace, time.Now().Format("15:04:05.000 ")+text)
	}
}

// note makes facts of writes.
func (f *fleet) note(writer string, old, now client.Object) {
	if fact, ok := f.factOf(writer, old, now); ok {
		fact.At = time.Now()
		f.facts = append(f.facts, fact)
		if f.tells {
			f.say("  " + writer + " writes " + describe(fact))
		}
	}
}

func describe(f histories.FleetFact) string {
	switch {
	case f.Source != nil:
		return fmt.Sprintf("%+v", *f.Source)
	case f.Place != nil:
		return fmt.Sprintf("%+v", *f.Place)
	case f.Switch != nil:
		return fmt.Sprintf("%+v", *f.Switch)
	}
	w := f.Workload
	return fmt.Sprintf("%s/%s: shows %v, %d replicas, paused %t, %+v, %+v", w.Namespace, w.Name, w.Shows, w.Replicas, w.Paused, w.Status, w.Wishes)
}

func (f *fleet) factOf(writer string, _, now client.Object) (histories.FleetFact, bool) {
	marks := map[string]string{}
	if now != nil {
		marks = now.GetAnnotations()
	}
	switch o := now.(type) {
	case *corev1.ConfigMap:
		if o.Name == settings.StopName {
			return histories.FleetFact{Switch: switchOf(o)}, true
		}
		return f.sourceFact(o, "configmap/"+o.Name, o.Data["key"]), true
	case *corev1.Secret:
		return f.sourceFact(o, "secret/"+o.Name, string(o.Data["key"])), true
	case *corev1.Namespace:
		limit, _ := strconv.Atoi(marks[settings.MaxRolling])
		return histories.FleetFact{Place: &histories.FleetNamespace{
			Name: o.Name, Held: marks[settings.Hold] != "", Windowed: marks[settings.Window] != "", Window: windowOf(marks[settings.Window]), Limit: limit,
		}}, true
	case *appsv1.Deployment:
		return histories.FleetFact{Workload: f.workloadOf(o), Lockstep: writer == kube.FieldManager}, true
	case nil: // the only object that is deleted is the kill switch
		return histories.FleetFact{Switch: &histories.FleetSwitch{}}, true
	}
	return histories.FleetFact{}, false
}

func (f *fleet) sourceFact(o client.Object, name, content string) histories.FleetFact {
	marks, p := o.GetAnnotations(), f.people[o.GetNamespace()]
	s := &histories.FleetSource{Namespace: o.GetNamespace(), Name: name, Content: content, Hurry: marks[settings.Ramp] == "off"}
	if digest := marks[settings.Resume]; digest != "" && digest == p.digest(name, content, hashers()) {
		s.Resumed = content
	}
	f.contents[s.Namespace+" "+name] = content
	f.digests[s.Namespace+" "+p.digest(name, content, hashers())] = content
	return histories.FleetFact{Source: s}
}

func (f *fleet) workloadOf(d *appsv1.Deployment) *histories.FleetWorkload {
	_, held := d.Annotations[settings.Hold]
	_, first := d.Annotations[settings.First]
	s, wanted := d.Status, *d.Spec.Replicas
	observed := s.ObservedGeneration >= d.Generation
	return &histories.FleetWorkload{
		Namespace: d.Namespace, Name: d.Name, Template: templateText(d), Replicas: int(wanted), Paused: d.Spec.Paused,
		Shows: f.showsOf(d),
		Status: histories.FleetStatus{
			Done:    observed && s.Replicas == wanted && s.UpdatedReplicas == wanted && s.AvailableReplicas == wanted,
			GivenUp: observed && len(s.Conditions) > 0 && s.Conditions[0].Status == corev1.ConditionFalse,
			Updated: int(s.UpdatedReplicas), Available: int(s.AvailableReplicas),
		},
		Wishes: histories.FleetWishes{
			Held: held, First: first, Windowed: d.Annotations[settings.Window] != "", Window: windowOf(d.Annotations[settings.Window]),
			After: strings.TrimPrefix(d.Annotations[settings.After], "deployment/"), Quiet: quietOf(d.Annotations[settings.Quiet]),
		},
	}
}

// showsOf is what Lockstep shows in a template: the content of each source.
func (f *fleet) showsOf(d *appsv1.Deployment) map[string]string {
	shows := map[string]string{}
	for id, mark := range input.ParseShown(d.Spec.Template.Annotations[settings.Inputs]) {
		shows[id.String()] = f.digests[d.Namespace+" "+mark.Digest]
	}
	return shows
}

func switchOf(o *corev1.ConfigMap) *histories.FleetSwitch {
	s := &histories.FleetSwitch{}
	for key := range o.Data {
		if namespace, ok := strings.CutPrefix(key, "namespace."); ok {
			s.Namespaces = append(s.Namespaces, namespace)
		} else {
			s.All = true
		}
	}
	slices.Sort(s.Namespaces)
	return s
}

func quietOf(text string) time.Duration {
	quiet, _ := time.ParseDuration(text) // none is zero
	return quiet
}

// windowText is a window as users write it, and windowOf reads it.
func windowText(w histories.Window) string {
	if w.Every == 0 {
		return ""
	}
	minute := int(w.Offset.Minutes())
	return fmt.Sprintf("%d,%d,%d * * * * %s", minute, minute+20, minute+40, w.To)
}

func windowOf(text string) histories.Window {
	for _, w := range histories.Windows() {
		if windowText(w) == text {
			return w
		}
	}
	return histories.Window{}
}

// TestFleetInProcess plays 50 histories of a fleet to the product's decisions, and 200 when
// HISTORIES=all. HISTORY_SEED=7 plays one, and HISTORY_SEED=1-5000 that many.
func TestFleetInProcess(t *testing.T) {
	t.Parallel()
	rollouts, last := 0, uint64(50)
	if os.Getenv("HISTORIES") == "all" {
		last = 200
	}
	play := func(seed uint64) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rollouts += playFleet(t, histories.NewFleet(seed, 30))
			})
		})
	}
	for _, seed := range seeds(t, 1, last) {
		play(seed)
	}
	fresh(t, play)
	t.Logf("%d rollouts by Lockstep", rollouts)
}

// playFleet plays a history. One that fails is reduced to what it takes to fail in that way.
func playFleet(t *testing.T, h histories.History) (rollouts int) {
	t.Helper()
	m, _, err := playFleetOnce(newFleet(h, histories.Uses(), false, false), h)
	if err == nil {
		return m.Rollouts()
	}
	way := wayOf(err)
	h = histories.Reduce(h, func(h histories.History) bool {
		_, _, err := playFleetOnce(newFleet(h, histories.Uses(), false, false), h)
		return err != nil && wayOf(err) == way
	})
	_, trace, again := playFleetOnce(newFleet(h, histories.Uses(), true, false), h)
	if again != nil { // it may depend on the order of a map
		err = again
	}
	t.Errorf("%v\n\nThe shortest history of seed %d (HISTORY_SEED=%d) that fails, with %+v:\n%s\n\n%s", err, h.Seed, h.Seed, h.Fleet, h, strings.Join(trace, "\n"))
	return 0
}

// sixHours is a history in which users prepare a fleet and change a ConfigMap, and then do nothing for six hours.
func sixHours(maxDelay time.Duration, prepare ...histories.Action) histories.History {
	h := histories.NewFleet(1, 0)
	h.Fleet = histories.Fleet{Ramp: true, MaxRolling: 20, StopAfter: 1, Settle: 10 * time.Second, Timeout: 10 * time.Minute, PauseGrace: 10 * time.Minute, MaxDelay: maxDelay}
	h.Actions = append([]histories.Action{{Verb: histories.Settle}}, prepare...)
	h.Actions = append(h.Actions, histories.Action{Verb: histories.Wait}, histories.Action{Verb: histories.Change, Source: histories.ConfigMap, On: "shop"}, histories.Action{Verb: histories.Endure})
	return h
}

// onlyBroken is a history in which only broken workloads can begin, because the healthy one has a long quiet
// window.
func onlyBroken(maxDelay time.Duration) histories.History {
	prepare := []histories.Action{{Verb: histories.LongQuiet, On: "shop/a"}}
	for _, name := range []string{"b", "c", "d", "e", "f"} {
		prepare = append(prepare, histories.Action{Verb: histories.Break, On: "shop/" + name})
	}
	return sixHours(maxDelay, prepare...)
}

// TestFoundFleet: every workload that nothing of its own holds back gets the version. It has to fail when the
// answer to when a workload can begin is wrong, which random histories rarely notice.
func TestFoundFleet(t *testing.T) {
	t.Parallel()
	act := func(on string, verbs ...histories.Verb) (all []histories.Action) {
		for _, v := range verbs {
			all = append(all, histories.Action{Verb: v, On: on})
		}
		return all
	}
	change := func(v histories.Verb) histories.Action {
		return histories.Action{Verb: v, Source: histories.ConfigMap, On: "shop"}
	}
	play := func(actions ...[]histories.Action) histories.History {
		h := sixHours(0)
		h.Actions = append(do(histories.Settle), slices.Concat(actions...)...)
		return h
	}
	// The copies of a shared source fail with different versions. Each of them is stopped after two failures.
	twoCopies := play([]histories.Action{{Verb: histories.Spoil, Source: histories.Shared}, {Verb: histories.Spoil, Source: histories.Shared, On: "blog"}}, do(histories.Settle))
	twoCopies.Fleet.StopAfter = 2
	for name, h := range map[string]histories.History{
		"TwoCopies":  twoCopies,
		"OnlyBroken": onlyBroken(time.Minute),
		// Behind the quiet window of the chosen workload is a hold, so the others don't wait for it.
		"HeldCanary": sixHours(0, act("shop/b", histories.Prefer, histories.LongQuiet, histories.Hold)...),
		// The chosen workload waits for another one, so that one doesn't wait for it.
		"CanaryAfter": sixHours(0, act("shop/b", histories.Prefer, histories.Order)...),
		// Behind the quiet window of the workload that goes before is a hold, so it isn't waited for.
		"HeldBefore": sixHours(0, append(act("shop/a", histories.LongQuiet, histories.Hold), act("shop/b", histories.Order)...)...),
		// The workload breaks while it waits for the chosen one, so it doesn't wait any longer.
		"BreaksMeanwhile": play(act("shop/b", histories.Prefer, histories.LongQuiet), []histories.Action{change(histories.Change)}, do(histories.Settle), act("shop/c", histories.Break), do(histories.Settle)),
		// Once the chosen workload has begun, the others wait for the end of its rollout.
		"CanaryBegins": play(act("shop/b", histories.Prefer, histories.ShortQuiet), []histories.Action{change(histories.Weaken)}, do(histories.Settle)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for seed := range uint64(4) { // delays differ
					h.Seed = seed
					playFleet(t, h)
				}
			})
		})
	}
}

// TestFleetAnswerLost: the answer to the first patch of a bad version is lost. The workload is on trial as any
// other, so the version reaches nobody else.
func TestFleetAnswerLost(t *testing.T) {
	t.Parallel()
	h := histories.NewFleet(1, 0)
	h.Fleet = histories.Fleet{Ramp: true, MaxRolling: 20, StopAfter: 1, Settle: 10 * time.Second, Timeout: 10 * time.Minute, PauseGrace: 10 * time.Minute}
	bad := histories.Action{Verb: histories.Spoil, Source: histories.ConfigMap, On: "shop"}
	h.Actions = slices.Concat(do(histories.Settle, histories.LoseAnswer), []histories.Action{bad}, do(histories.Settle, histories.Wait, histories.Wait))
	for seed := range uint64(10) { // another workload is the first
		synctest.Test(t, func(t *testing.T) {
			h.Seed = seed
			if got := playFleet(t, h); got != 1 {
				t.Errorf("seed %d: a version that failed reached %d workloads, want one", seed, got)
			}
		})
	}
}

// TestFleetModelNotices: without its bounds and gates, Lockstep breaks each of the rules.
func TestFleetModelNotices(t *testing.T) {
	t.Parallel()
	const endures = "has been due for hours" // no random history shows it as its first failure
	rules := map[string]bool{
		"an operator has stopped that": false, "which is held": false, "whose namespace is held": false, "outside of its window": false,
		"the version had failed on": false, "goes first, and has not finished it": false, "roll at the same time": false, "of namespace": false,
		"in its quiet window": false, endures: false,
		"goes first, and none is proven": false, "was not healthy before": false, "of this step roll already": false,
	}
	isMissing := func() bool {
		for rule, broken := range rules {
			if !broken && rule != endures {
				return true
			}
		}
		return false
	}
	note := func(f *fleet, h histories.History) {
		_, _, err := playFleetOnce(f, h)
		for rule := range rules {
			rules[rule] = rules[rule] || strings.Contains(fmt.Sprint(err), rule)
		}
	}
	synctest.Test(t, func(*testing.T) {
		for seed := uint64(0); seed < 200 && isMissing(); seed++ {
			h := histories.NewFleet(seed, 30)
			note(newFleet(h, histories.Uses(), false, true), h)
			stubborn := h // with bounds, but without the stop of a version
			stubborn.Fleet.StopAfter = 0
			if seed < 20 {
				note(newFleet(stubborn, histories.Uses(), false, false), h)
			}
		}
		// Broken workloads wait for healthy ones however long that takes.
		note(newFleet(onlyBroken(1000*time.Hour), histories.Uses(), false, false), onlyBroken(1000*time.Hour))
	})
	for rule, broken := range rules {
		if !broken {
			t.Errorf("no history breaks the rule %q", rule)
		}
	}
}

func playFleetOnce(f *fleet, h histories.History) (*histories.FleetModel, []string, error) {
	m := histories.NewFleetModel(h.Fleet)
	for i, a := range h.Actions {
		f.say(a.String())
		f.do(a)
		for _, fact := range f.facts {
			if err := m.Observe(fact); err != nil {
				return m, f.trace, fmt.Errorf("at %d, %s: %w", i, a, err)
			}
		}
		f.facts = nil
		if a.Verb != histories.Settle && a.Verb != histories.Endure || f.process.dead || !f.process.sees() {
			continue
		}
		judge := m.Settle
		if a.Verb == histories.Endure {
			judge = m.Endure
		}
		if err := judge(f.reasons(), time.Now()); err != nil {
			return m, f.trace, fmt.Errorf("at %d, %s: %w", i, a, err)
		}
	}
	return m, f.trace, nil
}

// reasons are those of each workload's last decision.
func (f *fleet) reasons() map[string]string {
	all := map[string]string{}
	for key, reason := range f.process.last {
		all[strings.TrimPrefix(key, "Deployment/")] = reason
	}
	return all
}
