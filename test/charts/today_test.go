package charts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
)

// everything switches on what the chart can make beside the workload.
const everything = minimal + `
ports: [{name: http, containerPort: 8080}]
service: {enabled: true}
serviceAccount: {create: true, annotations: {role: x}}
podDisruptionBudget: {enabled: true}
ingress: {enabled: true, className: nginx, hosts: [{host: web.example.org}], tls: [{hosts: [web.example.org], secretName: tls}]}
httpRoute: {enabled: true, parentRefs: [{name: public}], hostnames: [web.example.org]}
networkPolicy: {enabled: true, ingress: [{from: [{podSelector: {}}]}], egress: [{}]}
serviceMonitor: {enabled: true, interval: 30s, labels: {release: prometheus}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
autoscaling: {enabled: true}
sync: {enabled: true, image: "registry.example/lockstep-sync:v1", configmaps: [live], secrets: [token], args: ["--notify=http://127.0.0.1:8080/-/reload"]}
`

// TestWhatATeamNeeds: each part is there when it is asked for, and none otherwise.
func TestWhatATeamNeeds(t *testing.T) {
	t.Parallel()
	kinds := func(values string) (all []string) {
		for _, o := range helmtest.Objects(t, render(t, values)) {
			all = append(all, o.GetKind()+" "+o.GetName())
		}
		return all
	}
	parts := []string{
		"Service web", "ServiceAccount web", "PodDisruptionBudget web", "Ingress web", "HTTPRoute web", "NetworkPolicy web", "ServiceMonitor web",
		"HorizontalPodAutoscaler web", "Role web-sync", "RoleBinding web-sync", "Pod web-test",
	}
	with, without := kinds(everything), kinds(minimal)
	for _, part := range parts {
		if !slices.Contains(with, part) || slices.Contains(without, part) {
			t.Errorf("%s: asked for it is %v, otherwise %v", part, slices.Contains(with, part), slices.Contains(without, part))
		}
	}
	d := only(t, "Deployment", everything)
	spread := fmt.Sprint(at(t, d, "spec", "template", "spec", "topologySpreadConstraints"))
	if !strings.Contains(spread, "matchLabels:map[app:web]") {
		t.Errorf("pods are spread by %s", spread)
	}
	sidecar := at(t, d, "spec", "template", "spec", "initContainers").([]any)[0].(map[string]any)
	want := `["--root=/config","--health-addr=:8099","--configmap=live","--secret=token","--notify=http://127.0.0.1:8080/-/reload"]`
	if args, err := json.Marshal(sidecar["args"]); err != nil || string(args) != want || sidecar["restartPolicy"] != "Always" {
		t.Errorf("the sidecar has %s (%v)", args, err)
	}
	rule := at(t, only(t, "Role", everything+"revisions: {attach: controller}\n"), "rules").([]any)[0]
	if fmt.Sprint(rule) != "map[apiGroups:[] resourceNames:[live] resources:[configmaps] verbs:[list watch]]" {
		t.Errorf("the sidecar may %v", rule)
	}
}

// TestImagesOfTheRelease: the images of a release have its version as their tag, and its chart uses that tag.
func TestImagesOfTheRelease(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	dir := t.TempDir()
	h.Run(t, "package", h.Chart("app"), "--version", "1.2.3", "--app-version", "v1.2.3", "--destination", dir)
	rendered := helmtest.Objects(t, h.Run(t, "template", "release", filepath.Join(dir, "app-1.2.3.tgz"), "-f", helmtest.ValuesFile(t, attachImage), "-f", helmtest.ValuesFile(t, everything)))
	if job := container(t, helmtest.OfKind(rendered, "Job")[0]); job["image"] != "registry.example/lockstep:v1.2.3" {
		t.Errorf("the attach Job's image is %v", job["image"])
	}
}

// TestDeploymentUnlessArgo: the kind follows what the cluster and the values say.
func TestDeploymentUnlessArgo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values string
		args   []string
		want   string
	}{
		"nothing said":          {"", nil, "Deployment"},
		"Argo is there":         {"", []string{"--api-versions", "argoproj.io/v1alpha1/Rollout"}, "Rollout"},
		"said":                  {"workload: {kind: Deployment}", []string{"--api-versions", "argoproj.io/v1alpha1/Rollout"}, "Deployment"},
		"a strategy":            {"rollout: {strategy: {canary: {}}}", nil, "Rollout"},
		"base-app's strategy":   {"rollout: {preDefinedStrategy: manual-canary-1-pod}", nil, "Rollout"},
		"base-app's attach Job": {"configmapAttacher: {repository: quay.io/x/configmap-attacher, tag: 1.0.3}", nil, "Rollout"},
		"base-app's account":    {"rbac: {enabled: false}", nil, "Rollout"},
		"an account":            {"rbac: {enabled: false}\nconfigmapAttacher: {serviceAccountName: mine}", nil, "Deployment"},
		"no attach Job":         {"rbac: {enabled: false}\nrevisions: {attach: controller}", nil, "Deployment"},
	} {
		if found := objects(t, c.want, minimal+c.values, c.args...); len(found) != 1 {
			t.Errorf("%s: %d objects of kind %s", name, len(found), c.want)
		}
	}
}

// TestAdviceOfToday: what cannot work is refused with the way out.
func TestAdviceOfToday(t *testing.T) {
	t.Parallel()
	wantAdvice(t, map[string]string{
		"rbac: {enabled: false}\nworkload: {kind: Deployment}":                                                                    "can attach ConfigMaps to Rollouts only",
		"rbac: {enabled: false}\nsecrets: {s: {kv_data: {a: b}}}":                                                                 "can attach ConfigMaps to Rollouts only",
		"ingress: {enabled: true, hosts: [{host: a}]}":                                                                            "doesn't create a Service: set service.enabled=true",
		"httpRoute: {enabled: true, parentRefs: [{name: a}]}":                                                                     "doesn't create a Service: set service.enabled=true",
		"serviceMonitor: {enabled: true}":                                                                                         "doesn't create a Service: set service.enabled=true",
		"sync: {enabled: true, configmaps: [a]}":                                                                                  "set serviceAccount.create=true",
		"serviceAccount: {create: true}\nsync: {enabled: true, configmaps: [a]}":                                                  "sync.image to the reference of lockstep-sync",
		"sync: {enabled: true}":                                                                                                   "set sync.configmaps or sync.secrets",
		"autoscaling: {enabled: true, minReplicas: 12}":                                                                           "autoscaling.minReplicas is 12 and autoscaling.maxReplicas is 10: lower the minimum or raise the maximum",
		"secretsMountPath: /etc/kubernetes/configmaps/\nsecrets: {s: {kv_data: {a: b}}}":                                          "configmapsMountPath and secretsMountPath are the same directory, /etc/kubernetes/configmaps",
		"volumeMounts: [{name: mine, mountPath: /etc/kubernetes/configmaps}]":                                                     "configmapsMountPath and volumeMounts (mine) are the same directory",
		"serviceAccount: {create: true}\nsync: {enabled: true, image: a, configmaps: [a], mountPath: /etc/kubernetes/configmaps}": "configmapsMountPath and sync.mountPath are the same directory, /etc/kubernetes/configmaps",
		"domain: example.org":       "domain is not a value of this chart",
		"ingresss: {enabled: true}": "or set unknownValues=accept to allow it at the top level",
	})
	render(t, minimal+"rbac: {enabled: false}\nconfigmapAttacher: {serviceAccountName: mine}\n")
	if said := refused(t, minimal, "--kube-version", "1.22.0"); !strings.Contains(said, "1.23") {
		t.Errorf("an old Kubernetes: %s", said)
	}
}

// TestAttachRoleNamesItsObjects: the Job may change these objects and no others.
func TestAttachRoleNamesItsObjects(t *testing.T) {
	t.Parallel()
	values := minimal + "secrets: {s: {kv_data: {x: y}}}\n"
	names := map[string]string{"configmaps": only(t, "ConfigMap", values).GetName(), "secrets": only(t, "Secret", values).GetName()}
	ruled := map[string]int{}
	for _, rule := range at(t, only(t, "Role", values), "rules").([]any) {
		r := rule.(map[string]any)
		for _, resource := range r["resources"].([]any) {
			name, isObject := names[resource.(string)]
			if !isObject {
				continue
			}
			ruled[resource.(string)]++
			if fmt.Sprint(r["resourceNames"]) != "["+name+"]" {
				t.Errorf("the rule for %s is %v, want the name %s in it", resource, r, name)
			}
		}
	}
	if want := map[string]int{"configmaps": 1, "secrets": 1}; !maps.Equal(ruled, want) {
		t.Errorf("the Role has rules for %v, want %v", ruled, want)
	}
}

// TestAFailedAttachFailsNoRelease: unless it is asked for.
func TestAFailedAttachFailsNoRelease(t *testing.T) {
	t.Parallel()
	for values, tolerant := range map[string]bool{"": true, "configmapAttacher: {failRelease: true}\n": false} {
		job := only(t, "Job", minimal+values)
		if got := strings.Contains(fmt.Sprint(container(t, job)["args"]), "--best-effort"); got != tolerant {
			t.Errorf("%q: --best-effort is %v", values, got)
		}
		if kept := !strings.Contains(job.GetAnnotations()["helm.sh/hook-delete-policy"], "hook-succeeded"); kept != tolerant {
			t.Errorf("%q: the Job is kept for its log: %v", values, kept)
		}
	}
}

// TestDefaultsPassTheRestrictedLevel: the API server itself admits the pods of the
// chart where the strictest pod security level is enforced.
func TestDefaultsPassTheRestrictedLevel(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t)
	namespace := labtest.Namespace(t, cluster)
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	level := []byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`)
	if err := c.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, client.RawPatch("application/merge-patch+json", level)); err != nil {
		t.Fatal(err)
	}
	for _, o := range helmtest.Objects(t, render(t, everything)) {
		spec, found, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
		if o.GetKind() == "Pod" {
			spec, found, _ = unstructured.NestedMap(o.Object, "spec")
		}
		if !found {
			continue
		}
		spec["serviceAccountName"] = "default"
		pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec}}
		pod.SetNamespace(namespace)
		pod.SetName(strings.ToLower(o.GetKind()))
		if err := c.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Errorf("the pods of %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}
