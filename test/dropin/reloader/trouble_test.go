package reloader_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// refusal is an admission policy that refuses writes in a room.
type refusal struct {
	room    *room
	objects []client.Object
}

// refuse refuses operations on a resource unless a CEL expression allows them. It waits until the
// API server does so.
func (r *room) refuse(t *testing.T, group, resource string, operation admissionv1.OperationType, unless string) *refusal {
	t.Helper()
	name := r.name + "-" + resource
	here := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: r.name}}
	all := &refusal{room: r, objects: []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionv1.Fail),
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{operation},
					Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
				}}}},
				Validations: []admissionv1.Validation{{Expression: unless, Message: "the policy refuses it"}},
			},
		},
		&admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
				MatchResources: &admissionv1.MatchResources{NamespaceSelector: here},
			},
		},
	}}
	r.create(t, all.objects...)
	t.Cleanup(func() {
		for _, o := range all.objects {
			_ = r.client.Delete(context.WithoutCancel(t.Context()), o)
		}
	})
	all.await(t, true)
	return all
}

// await waits until the policy refuses writes, or no longer.
func (f *refusal) await(t *testing.T, refused bool) {
	t.Helper()
	policy := f.objects[0].(*admissionv1.ValidatingAdmissionPolicy)
	rule := policy.Spec.MatchConstraints.ResourceRules[0]
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		var err error
		switch rule.Operations[0] {
		case admissionv1.Create:
			err = f.room.client.Create(t.Context(), probe(t, f.room.name), client.DryRunAll)
		default:
			o := &unstructured.Unstructured{}
			o.SetAPIVersion("apps/v1")
			o.SetKind("Deployment")
			o.SetNamespace(f.room.name)
			o.SetName("refused")
			err = f.room.client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"probe":"yes"}}}`)), client.DryRunAll)
		}
		return strings.Contains(fmt.Sprint(err), "the policy refuses it") == refused, fmt.Sprintf("a write answers %v", err)
	})
}

// probe is a Job for a dry run.
func probe(t *testing.T, namespace string) client.Object {
	t.Helper()
	a := app{kind: "Job", name: "probe", pod: uses()}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": a.specOf(t)}}
	o.SetAPIVersion("batch/v1")
	o.SetKind("Job")
	o.SetNamespace(namespace)
	o.SetName("probe")
	return o
}

// lift ends the policy.
func (f *refusal) lift(t *testing.T) {
	t.Helper()
	for _, o := range slices.Backward(f.objects) {
		f.room.remove(t, o)
	}
	f.await(t, false)
}

// refusedWorkload: a workload that admission refuses doesn't hold up others, nor does it repeat
// what was done for them. It gets the change when it may, and is reported once until then.
func refusedWorkload(t *testing.T, r *room, p *program) {
	t.Helper()
	source := r.configMap(t, "c", "0")
	refused := r.add(t, app{name: "refused", notes: notes(auto, "true")})
	other, stateful := r.add(t, app{name: "other", notes: notes(auto, "true")}), r.add(t, app{kind: "StatefulSet", notes: notes(auto, "true")})
	r.add(t, app{kind: "CronJob", notes: notes(auto, "true")})
	f, policy := r.fence(t), r.refuse(t, "apps", "deployments", admissionv1.Update, "object.metadata.name != 'refused'")
	r.set(t, source, "1")
	r.awaitShown(t, other, 1, sum("1"))
	r.awaitShown(t, stateful, 1, sum("1"))
	r.awaitEvent(t, refused, "Warning ReloadFail reloader-configmaps ", "the policy refuses it")
	r.awaitJobs(t, 1)
	policy.lift(t)
	f.pass(t) // Pauses between attempts grow, and a change ends them.
	r.awaitShown(t, refused, 1, sum("1"))
	r.awaitEvent(t, refused, "Normal Reloaded ")
	r.awaitJobs(t, 1)
	r.awaitShown(t, other, 1, sum("1"))
	metrics, _ := p.get(t, "/metrics")
	if strings.Contains(metrics, `reloader_reload_executed_total{success="false"} 0`) {
		t.Error("the failure isn't counted")
	}
}

// TestRefusedAcrossRestarts: the next process knows who lacks a change, and gives it to nobody else.
func TestRefusedAcrossRestarts(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "refused")
	source := r.configMap(t, "c", "0")
	refused, other := r.add(t, app{name: "refused", notes: notes(auto, "true")}), r.add(t, app{name: "other", notes: notes(auto, "true")})
	r.add(t, app{kind: "CronJob", notes: notes(auto, "true")})
	p := r.run(t, "--reload-strategy=annotations")
	policy := r.refuse(t, "apps", "deployments", admissionv1.Update, "object.metadata.name != 'refused'")
	r.set(t, source, "1")
	r.awaitShown(t, other, 1, sum("1"))
	r.awaitEvent(t, refused, "Warning ReloadFail ")
	r.awaitJobs(t, 1)
	p.stop(t)
	policy.lift(t)
	r.run(t, "--reload-strategy=annotations")
	r.awaitShown(t, refused, 1, sum("1"))
	f := r.fence(t)
	f.pass(t)
	r.awaitShown(t, other, 1, sum("1"))
	r.awaitJobs(t, 1)
}

// TestMissingKind: a kind that may not be listed is named once in the log and in /readyz, and the
// others are reloaded. When it may be, it gets what it lacks with the next change.
func TestMissingKind(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, labtest.Shared(t))
	v := values{namespaceSelector: true}
	rules := v.role()
	without := slices.Clone(rules)
	without[1].Resources = []string{"deployments", "statefulsets"}
	s.account.AllowEverywhere(t, without...)
	s.account.Allow(t, v.metadataRole()...)
	s.awaitRole(t, []string{s.release})
	r := s.namespace(t, "missing")
	source := r.configMap(t, "c", "0")
	daemons := r.add(t, app{kind: "DaemonSet", notes: notes(auto, "true")})
	workload, stateful := r.add(t, app{notes: notes(auto, "true")}), r.add(t, app{kind: "StatefulSet", notes: notes(auto, "true")})
	p := s.run(t)
	p.awaitReady(t, "[+] deployments", "[-] daemonsets: permission is missing: ")
	r.set(t, source, "1")
	r.awaitReloads(t, workload, 1, mark("configmap/c", "1"))
	r.awaitReloads(t, stateful, 1, mark("configmap/c", "1"))
	r.set(t, source, "2")
	r.awaitReloads(t, stateful, 2, mark("configmap/c", "2"))
	f := r.fence(t)
	f.pass(t)
	r.mustBeUntouched(t, daemons)
	if got := strings.Count(p.log(), "cannot list resource \\\"daemonsets\\\""); got != 1 {
		t.Errorf("the missing permission is logged %d times:\n%s", got, p.log())
	}
	s.account.AllowEverywhere(t, rules...)
	testkit.AwaitListing(t, s.account, true, blankList("apps/v1", "DaemonSet"), client.InNamespace(r.name))
	r.set(t, source, "3")
	r.awaitMarks(t, daemons, mark("configmap/c", "3")) // perhaps after version 2, which was owed
	p.awaitReady(t, "[+] daemonsets")
}

// TestMissingSecrets: without the permission for Secrets, ConfigMaps are followed.
func TestMissingSecrets(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, labtest.Shared(t))
	v := values{namespaceSelector: true, ignoreSecrets: true}
	s.grant(t, v, s.release)
	r := s.namespace(t, "missing")
	config, secret := r.configMap(t, "c", "0"), r.secret(t, "s", "0")
	o := r.add(t, app{notes: notes(auto, "true"), pod: uses("configmap/c", "secret/s")})
	p := s.run(t)
	p.awaitReady(t, "[+] configmaps", "[-] secrets: permission is missing: ")
	r.set(t, config, "1")
	r.awaitReloads(t, o, 1, mark("configmap/c", "1"))
	v.ignoreSecrets = false
	s.account.AllowEverywhere(t, v.role()...)
	testkit.AwaitListing(t, s.account, true, &corev1.SecretList{})
	p.awaitReady(t, "[+] secrets")
	r.set(t, secret, "1")
	r.awaitShownTwo(t, o)
}

// awaitShownTwo waits until a workload has a variable of each type.
func (r *room) awaitShownTwo(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := r.marksOf(t, o)
		return len(got) == 2, fmt.Sprintf("the marks are %q", got)
	})
}

// TestMissingRecord: without the Role for the release namespace nothing is remembered, which is
// logged once, and changes are delivered.
func TestMissingRecord(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, labtest.Shared(t))
	v := values{namespaceSelector: true}
	s.account.AllowEverywhere(t, v.role()...)
	s.awaitRole(t, []string{s.release})
	r := s.namespace(t, "missing")
	source := r.configMap(t, "c", "0")
	o := r.add(t, app{notes: notes(auto, "true")})
	p := r.run(t)
	r.set(t, source, "1")
	r.awaitReloads(t, o, 1, mark("configmap/c", "1"))
	r.set(t, source, "2")
	r.awaitReloads(t, o, 2, mark("configmap/c", "2"))
	p.stop(t)
	if got := strings.Count(p.log(), "cannot record delivered versions"); got != 1 {
		t.Errorf("the missing permission is logged %d times:\n%s", got, p.log())
	}
	r.mustStay(t, map[string]*unstructured.Unstructured{"workload": o}, func() { r.run(t) })
}

// mistakes: a value that the original ignores silently is a warning on the workload, and
// everything else continues.
func mistakes(t *testing.T, r *room, _ *program) {
	t.Helper()
	source := r.configMap(t, "c", "0")
	pattern := r.add(t, app{name: "pattern", notes: notes(configMapReload, "c,(")})
	period := r.add(t, app{name: "period", notes: notes(auto, "true", pausePeriod, "soon")})
	zero := r.add(t, app{name: "zero", notes: notes(auto, "true", pausePeriod, "0s")})
	nonsense := r.add(t, app{name: "nonsense", notes: notes(auto, "ja")})
	r.set(t, source, "1")
	for _, o := range []*unstructured.Unstructured{pattern, period, zero} {
		r.awaitReloads(t, o, 1, mark("configmap/c", "1"))
		if isPaused(o) {
			t.Errorf("%s is paused", o.GetName())
		}
	}
	r.awaitEvent(t, pattern, "Warning ", "(")
	r.awaitEvent(t, period, "Warning ", "soon")
	r.awaitEvent(t, zero, "Warning ", "0s")
	r.awaitEvent(t, nonsense, "Warning ", "ja")
}

// TestSecretsStayPrivate: no content reaches the log, an event or the record, nor does the hash of
// a Secret that no template shows.
func TestSecretsStayPrivate(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "private")
	shown, hidden := r.secret(t, "shown", "correct-horse"), r.secret(t, "hidden", "battery-staple")
	o := r.add(t, app{notes: notes(secretReload, "shown"), pod: uses("secret/hidden")})
	r.add(t, app{name: "follows", notes: notes(auto, "true"), pod: uses("secret/hidden")})
	p := r.run(t, "--log-level=trace")
	r.set(t, shown, "correct-horse-2")
	r.awaitReloads(t, o, 1, mark("secret/shown", "correct-horse-2"))
	r.patch(t, hidden, `{"metadata":{"labels":{"a":"b"}}}`)
	f := r.fence(t)
	f.pass(t)
	r.remove(t, hidden)
	f.pass(t)
	p.stop(t)
	everything := p.log() + p.Stdout() + r.everything(t)
	for _, secret := range []string{"correct-horse", "battery-staple", "Y29ycmVjdC1ob3JzZ", "YmF0dGVyeS1zdGFwbGU", sum("battery-staple"), sum("correct-horse")} {
		if strings.Contains(everything, secret) {
			t.Errorf("%q is in\n%s", secret, everything)
		}
	}
	if !strings.Contains(everything, sum("correct-horse-2")) {
		t.Error("the record doesn't have the hash that the template shows")
	}
}

// TestMissedDelete: a Secret that is deleted while the API server can't be reached is delivered
// under its name, and its content isn't logged.
func TestMissedDelete(t *testing.T) {
	t.Parallel()
	s := newSite(t, values{})
	r := s.namespace(t, "deleted")
	source, begun := r.secret(t, "s", "correct-horse"), time.Now()
	o := r.add(t, app{notes: notes(auto, "true"), pod: uses("secret/s")})
	line, through := testkit.NewLine(t, s.kubeconfig, s.cluster.Server())
	s.kubeconfig = through
	p := r.run(t, "--reload-on-delete=true", "--reload-strategy=annotations", "--log-level=trace")
	line.Cut()
	r.remove(t, source)
	line.Mend()
	r.awaitLast(t, o, reloaded{"SECRET", "s", deletedHash, "web"}, begun)
	p.stop(t)
	if strings.Contains(p.log(), "correct-horse") || strings.Contains(p.log(), "Y29ycmVjdC1ob3JzZ") {
		t.Errorf("the content is logged:\n%s", p.log())
	}
}

// everything is what the program leaves in the release namespace and in events.
func (r *room) everything(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	events := &corev1.EventList{}
	if err := r.client.List(t.Context(), events, client.InNamespace(r.name)); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		text.WriteString(e.String() + "\n")
	}
	written := &corev1.ConfigMapList{}
	if err := r.client.List(t.Context(), written, client.InNamespace(r.release)); err != nil {
		t.Fatal(err)
	}
	for _, cm := range written.Items {
		text.WriteString(cm.String() + "\n")
	}
	return text.String()
}
