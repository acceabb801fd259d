package reload_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestWhatIsWritten: one annotation of the template, by our name, that shows each source's version
// and lets nobody test guesses of a Secret.
func TestWhatIsWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one")+secret("db", "key: one")+deployment("web", auto, uses("configmap/app", "secret/db")))
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "secret/db")
	before := s.Deployment(t, "web")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)

	after := s.Deployment(t, "web")
	shown := after.Spec.Template.Annotations[settings.Inputs]
	if !regexp.MustCompile(`^configmap/app~[0-9a-f]{10},secret/db~[0-9a-f]{10}$`).MatchString(shown) {
		t.Errorf("the template shows %q, want each source and ten digits", shown)
	}
	content := fingerprint.Hasher{}.Content(map[string]string{"key": "two"}, nil)
	if want := content.Version(fingerprint.AllKeys()).Short(); digest(t, shown, "configmap/app") != want {
		t.Errorf("the ConfigMap is shown as %q, want %s", shown, want)
	}
	plain := fingerprint.Hasher{}.Content(map[string]string{"key": "one"}, nil).Version(fingerprint.AllKeys()).Short()
	sum := sha256.Sum256([]byte("one"))
	if got := digest(t, shown, "secret/db"); got == plain || strings.HasPrefix(hex.EncodeToString(sum[:]), got) {
		t.Errorf("the Secret is shown as %s, which anybody can compute of a guess", got)
	}
	delete(after.Spec.Template.Annotations, settings.Inputs)
	if len(after.Spec.Template.Annotations) != 0 || after.Spec.Template.Spec.String() != before.Spec.Template.Spec.String() {
		t.Errorf("more than one annotation of the template was changed:\n%v", after.Spec.Template)
	}
	s.checkFieldManager(t, after)
}

// checkFieldManager: our name stands at our two annotations and nowhere else.
func (s *stage) checkFieldManager(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	found := false
	for _, entry := range d.ManagedFields {
		if entry.Manager != "lockstep" {
			continue
		}
		found = true
		want := `{"f:metadata":{"f:annotations":{"f:lockstep.dev/moved-by":{}}},"f:spec":{"f:template":{"f:metadata":{"f:annotations":{".":{},"f:lockstep.dev/inputs":{}}}}}}`
		if got := string(entry.FieldsV1.GetRawBytes()); got != want {
			t.Errorf("lockstep owns %s, want %s", got, want)
		}
	}
	if !found {
		t.Error("no managed fields of lockstep")
	}
}

// TestEnvironmentForm: the versions as a variable of the first container, where it
// stays; switching to it takes the annotation out.
func TestEnvironmentForm(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one")+configMap("other", "key: one")+
		deployment("web", auto, uses("configmap/app", "configmap/other"))+
		deployment("several", auto, "containers: [{name: a, image: a, env: [{name: A, value: x}]}, {name: b, image: b, envFrom: [{configMapRef: {name: app}}]}]"))
	c := s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	s.awaitRollouts(t, "deployment/several", 1)
	s.awaitKnown(t, deploy, "web", digest(t, s.shown(t, web), "configmap/app"))
	s.awaitKnown(t, deploy, "several", digest(t, s.shown(t, "deployment/several"), "configmap/app"))
	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}

	// The witness shows nothing in its annotation now: its rollouts are counted.
	turns := 0
	s.pass = func(t testing.TB) {
		t.Helper()
		turns++
		s.change(t, "configmap/witness", fmt.Sprintf("{data: {key: turn-%d}}", turns))
		s.awaitRollouts(t, "deployment/witness", turns)
	}
	c = s.run(t, "--form", "env")
	s.checkRollouts(t, "switched to variables", 1, web, "deployment/several")
	for turn := 2; turn <= 3; turn++ {
		s.change(t, "configmap/app", fmt.Sprintf("{data: {key: turn-%d}}", turn))
		for _, name := range []string{"web", "several"} {
			s.awaitRollouts(t, "deployment/"+name, turn)
			s.checkVariable(t, name)
			s.Revisions(t, name) // each is to have its ReplicaSet, for the undo
		}
	}
	s.change(t, "configmap/other", "{data: {key: two}}")
	s.awaitRollouts(t, web, 4)
	s.Revisions(t, "web")
	s.checkRollouts(t, "nothing of the old form is in the way", 4, web)
	s.awaitKnown(t, deploy, "web", digest(t, s.variable(t, "web"), "configmap/other"))

	stop(t, c)
	s.undoVariable(t, "web")
	s.run(t, "--form", "env")
	s.checkRollouts(t, "the undo is respected after a restart", 5, web)
}

// variable is what the first container's variable shows.
func (s *stage) variable(t testing.TB, name string) string {
	t.Helper()
	for _, v := range s.Deployment(t, name).Spec.Template.Spec.Containers[0].Env {
		if v.Name == settings.InputsVariable {
			return v.Value
		}
	}
	return ""
}

func (s *stage) checkVariable(t *testing.T, name string) {
	t.Helper()
	d := s.Deployment(t, name)
	var all []string
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, v := range c.Env {
			all = append(all, c.Name+" "+v.Name)
		}
	}
	want := map[string]string{"web": "[app LOCKSTEP_INPUTS]", "several": "[a LOCKSTEP_INPUTS a A]"}[name]
	if fmt.Sprint(all) != want || !strings.HasPrefix(s.variable(t, name), "configmap/app~") {
		t.Errorf("%s has the variables %v, want %s; it shows %q", name, all, want, s.variable(t, name))
	}
	if _, still := d.Spec.Template.Annotations[settings.Inputs]; still {
		t.Errorf("%s shows its versions in the annotation too", name)
	}
}

// undoVariable puts the revision before the last one back.
func (s *stage) undoVariable(t testing.TB, name string) {
	t.Helper()
	d := s.Deployment(t, name)
	newest := s.variable(t, name)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		sets := &appsv1.ReplicaSetList{}
		if err := s.Client.List(t.Context(), sets, client.InNamespace(s.Namespace), client.MatchingLabels{"app": name}); err != nil {
			t.Fatal(err)
		}
		var before *appsv1.ReplicaSet
		newestMade := false
		for i, set := range sets.Items {
			env := set.Spec.Template.Spec.Containers[0].Env
			switch {
			case len(env) == 0:
			case env[0].Value == newest:
				newestMade = true
			default:
				before = &sets.Items[i]
			}
		}
		if before == nil || !newestMade {
			return false, fmt.Sprintf("%d ReplicaSets; the newest revision exists: %t, an earlier one: %t", len(sets.Items), newestMade, before != nil)
		}
		d.Spec.Template = before.Spec.Template
		delete(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		d.ResourceVersion = ""
		return true, ""
	})
	if err := s.Client.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// contested is a stage with a Deployment that is on record, whose patches a test can come before,
// and its metrics.
func contested(t testing.TB) (s *stage, between *testkit.Between, metric func(result string) int) {
	t.Helper()
	s = newStage(t, simple())
	between = testkit.NewBetween(t, s.World, "deployments/web")
	address := freeAddress(t)
	inprocess.StartControllerAs(t, s.World, between.Kubeconfig, "--quiet", testkit.Quiet, "--metrics-addr", address).AwaitReady(t, true)
	s.witness.AwaitKnown(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	return s, between, func(result string) int {
		t.Helper()
		return int(value(t, scrape(t, address), `lockstep_reloads_total{kind="Deployment",namespace="`+s.Namespace+`",reason="ReloadFailed",result="`+result+`"}`))
	}
}

// write patches the Deployment or its status, also while a request is held up.
func (s *stage) write(t testing.TB, body string) {
	t.Helper()
	d := testkit.Deployment("web", "", "")
	d.Namespace = s.Namespace
	var err error
	patch := client.RawPatch(types.StrategicMergePatchType, []byte(body))
	if strings.HasPrefix(body, `{"status"`) {
		err = s.Client.Status().Patch(t.Context(), d, patch)
	} else {
		err = s.Client.Patch(t.Context(), d, patch)
	}
	if err != nil && t.Context().Err() == nil {
		t.Errorf("write the Deployment: %v", err)
	}
}

// label writes a label of the Deployment, which Lockstep doesn't decide on.
func (s *stage) label(t testing.TB, value string) {
	t.Helper()
	s.write(t, fmt.Sprintf(`{"metadata":{"labels":{"operator":%q}}}`, value))
}

// TestConflictIsANewDecision: another client that writes the Deployment before our patch makes it
// fail, and is neither overwritten nor a reason for a second rollout. A write that nothing was
// decided on costs another patch, any other one another decision.
func TestConflictIsANewDecision(t *testing.T) {
	t.Parallel()
	s, between, metric := contested(t)
	const writes = 6 // one more than the patches of a decision
	between.Before(func(patch int) {
		if patch <= writes {
			s.label(t, fmt.Sprint(patch))
		}
	})
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	// The Deployment controller may come between too.
	if got := metric("conflict"); got < writes || got != between.Passed()-1 {
		t.Errorf("%d conflicts in %d patches, want at least %d, and one patch without", got, between.Passed(), writes)
	}
	s.checkRollouts(t, "a change beside another writer", 1, web)

	// A user forbids the change after the decision.
	before := metric("conflict")
	between.Before(func(patch int) {
		if patch == 1 {
			s.write(t, fmt.Sprintf(`{"metadata":{"annotations":{%q:"release freeze"}}}`, settings.Hold))
		}
	})
	s.change(t, "configmap/app", "{data: {key: held}}")
	s.AwaitEvent(t, "web", "Held", "release freeze")
	s.checkRollouts(t, "a hold before the patch", 1, web)
	if got := metric("conflict") - before; got == 0 {
		t.Error("no conflict, although the patch of the earlier decision comes too late")
	}
	between.Before(nil)
	s.annotate(t, web, settings.Hold)
	s.awaitRollouts(t, web, 2)

	// A person's template written while the change waits delivers it.
	s.annotate(t, web, settings.Quiet, "1m")
	s.change(t, "configmap/app", "{data: {key: four}}")
	s.change(t, web, "{spec: {template: {metadata: {labels: {release: second}}}}}")
	s.awaitKnown(t, deploy, "web", versionOf("four"))
	s.annotate(t, web, settings.Quiet, testkit.Quiet)
	s.checkRollouts(t, "the person's own rollout loads it", 3, web)
	if got := metric("failure"); got != 0 {
		t.Errorf("%d failures are counted, want none", got)
	}
}

// TestWriterWhoAlwaysComesFirst: nothing gets through beside a client that writes the Deployment
// before every patch. Lockstep reports that, and delivers the change once when the client ends.
func TestWriterWhoAlwaysComesFirst(t *testing.T) {
	t.Parallel()
	s, between, metric := contested(t)
	between.Before(func(patch int) { s.label(t, fmt.Sprint(patch)) })
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.AwaitEvent(t, "web", "Warning ReloadFailed", "other clients wrote the workload during each of the last 7 attempts")
	s.awaitKnown(t, deploy, "web", "ReloadFailed")
	if said := s.command(t, "explain", web, "--controller-namespace", s.Own); !strings.Contains(said, "ReloadFailed") {
		t.Errorf("explain doesn't report the failure:\n%s", said)
	}
	// Six decisions were sent five times before the one that is reported.
	if conflicts, failures := metric("conflict"), metric("failure"); conflicts < 6*5 || failures < 1 {
		t.Errorf("%d conflicts and %d failures, want at least 30 and 1", conflicts, failures)
	}
	s.checkRollouts(t, "nothing gets through", 0, web)
	between.Before(nil)
	s.awaitRollouts(t, web, 1)
	s.checkRollouts(t, "delivered once", 1, web)
	if got := between.Passed(); got != 1 {
		t.Errorf("%d patches without a conflict, want 1", got)
	}
}

// TestWriterWithoutEnd: a change is delivered once, in a bounded number of patches, beside an
// operator that writes the Deployment for ever, whatever part of it.
func TestWriterWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"Labels":      `{"metadata":{"labels":{"operator":"%d"}}}`,
		"Annotations": `{"metadata":{"annotations":{"example.com/seen":"%d"}}}`,
		"Spec":        `{"spec":{"revisionHistoryLimit":%d}}`,
		"Status":      `{"status":{"conditions":[{"type":"Operator","status":"True","message":"%d"}]}}`,
	} {
		for _, every := range []time.Duration{time.Second, 100 * time.Millisecond} {
			t.Run(name+"/"+every.String(), func(t *testing.T) {
				t.Parallel()
				s, between, metric := contested(t)
				turns := 0
				stop := s.repeat(t, every, func(turn int) { s.write(t, fmt.Sprintf(text, turn)); turns++ })
				between.Before(nil)
				for change := 1; change <= 3; change++ {
					s.change(t, "configmap/app", fmt.Sprintf("{data: {key: change-%d}}", change))
					s.awaitRollouts(t, web, change)
				}
				s.checkRollouts(t, "three changes beside an operator that doesn't end", 3, web)
				stop()
				t.Logf("%d patches, %d conflicts and %d failures for three changes beside %d writes", between.Passed(), metric("conflict"), metric("failure"), turns)
				// Seven attempts of five patches in a row are a failure, which Lockstep reports.
				if most := (3 + metric("failure")) * 7 * 5; between.Passed() > most {
					t.Errorf("%d patches for three changes, want at most %d", between.Passed(), most)
				}
			})
		}
	}
}

// versionOf is how the record writes the version of a ConfigMap with one key.
func versionOf(value string) string {
	return fingerprint.Hasher{}.Content(map[string]string{"key": value}, nil).Version(fingerprint.AllKeys()).String()
}
