package charts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/test/helmtest"
)

const minimal = "appName: web\nconfigmaps: {c: {kv_data: {x: y}}}\n"

// TestPredefinedStrategies have exactly the content that they had.
func TestPredefinedStrategies(t *testing.T) {
	t.Parallel()
	const metadata = `"stableMetadata": {"labels": {"role": "stable", "canary": "false"}}, "canaryMetadata": {"labels": {"role": "canary", "canary": "true"}}`
	onePod := `{"canary": {"maxSurge": 0, "maxUnavailable": 1, ` + metadata + `, "steps": [{"setWeight": 1}, {"pause": {}}]}}`
	cases := map[string]struct {
		values string
		want   string
	}{
		"by default": {"workload: {kind: Rollout}", onePod},
		"one pod":    {"rollout: {preDefinedStrategy: manual-canary-1-pod}", onePod},
		"a fifth":    {"rollout: {preDefinedStrategy: manual-canary-20-pct}", `{"canary": {` + metadata + `, "steps": [{"setWeight": 20}, {"pause": {}}]}}`},
		"custom":     {"rollout: {strategy: {canary: {steps: [{setWeight: 10}, {pause: {}}]}}}", `{"canary": {"steps": [{"setWeight": 10}, {"pause": {}}]}}`},
		"custom with the other one emptied as was needed before": {
			`rollout: {preDefinedStrategy: "", strategy: {blueGreen: {activeService: web}}}`, `{"blueGreen": {"activeService": "web"}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sameJSON(t, at(t, only(t, "Rollout", minimal+c.values), "spec", "strategy"), c.want)
		})
	}
}

// TestRefusals: what cannot work is refused with advice.
func TestRefusals(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		values string
		want   string
	}{
		"no name":             {"{}", "appName is empty: set it to the name of your application"},
		"long name":           {"appName: " + strings.Repeat("a", 64), "use at most 63 lowercase letters"},
		"upper case":          {"appName: Web", "use at most 63 lowercase letters"},
		"bad key":             {"{appName: a, configmaps: {Bad_Key: {}}}", "configmaps.Bad_Key: the key becomes part of an object's name"},
		"long key":            {"{appName: a, secrets: {" + strings.Repeat("k", 250) + ": {}}}", "the key is too long"},
		"clash":               {"{appName: a, configmaps: {c: {kv_data: {x: 1}}, d: {raw_data: {x: 2}}}}", `configmaps.c and configmaps.d both contain the file "x"`},
		"clash of Secrets":    {"{appName: a, secrets: {c: {kv_data: {x: 1}}, d: {binaryData: {x: AQ==}}}}", `secrets.c and secrets.d both contain the file "x"`},
		"twice in one":        {"{appName: a, configmaps: {c: {kv_data: {x: 1}, raw_data: {x: 2}}}}", `the key "x" is in kv_data and in raw_data`},
		"no base64":           {"{appName: a, configmaps: {c: {binaryData: {x: '***'}}}}", "isn't valid base64; encode the file with: base64 -w0 FILE"},
		"large number":        {"{appName: a, configmaps: {c: {kv_data: {x: 12345678901234567890}}}}", "kept exactly; quote it"},
		"structure":           {"{appName: a, configmaps: {c: {kv_data: {x: {y: z}}}}}", "/configmaps/c/kv_data/x"},
		"misspelt group":      {"{appName: a, configMaps: {}}", "configMaps is not a value of this chart"},
		"misspelt Secrets":    {"{appName: a, Secrets: {}}", "Secrets is not a value of this chart"},
		"misspelt name":       {"{appName: a, app_name: b}", "app_name is not a value of this chart"},
		"misspelt part":       {"{appName: a, configmaps: {c: {kv: {}}}}", "configmaps.c.kv isn't a known name: use kv_data"},
		"unknown part":        {"{appName: a, secrets: {c: {kv: {}}}}", "secrets.c.kv is not a value of this chart: use binaryData, kv_data, raw_data, templated, type, use"},
		"unknown setting":     {"{appName: a, revisions: {name: adler32}}", "revisions.name is not a value of this chart: use attach, immutable, naming, secretSalt"},
		"dots":                {"{appName: a, configmaps: {c..d: {}}}", "digits, dashes and single dots"},
		"unknown strategy":    {"{appName: a, rollout: {preDefinedStrategy: yolo}}", `rollout.preDefinedStrategy "yolo" is unknown: use manual-canary-1-pod, manual-canary-20-pct or auto`},
		"two strategies":      {"{appName: a, rollout: {preDefinedStrategy: manual-canary-1-pod, strategy: {canary: {}}}}", "are both set; keep one"},
		"no strategy":         {`{appName: a, workload: {kind: Rollout}, rollout: {preDefinedStrategy: ""}}`, "a Rollout needs a strategy"},
		"null strategy":       {`{appName: a, workload: {kind: Rollout}, rollout: {preDefinedStrategy: null}}`, "a Rollout needs a strategy"},
		"kind":                {"{appName: a, workload: {kind: Pod}}", "/workload/kind"},
		"service lacks ports": {"{appName: a, service: {enabled: true}}", "set ports (of the container) or service.ports"},
		"nothing to scale":    {"{appName: a, autoscaling: {enabled: true, targetCPUUtilizationPercentage: 0}}", "no metric is set"},
		"used by nobody": {
			"{appName: a, configmaps: {c: {use: none, kv_data: {x: y}}}}",
			"configmaps.c: use is none and the pod template doesn't reference it, so the attach Job can't attach it to a revision and it would never be removed.",
		},
		"old attacher": {
			"{appName: a, secrets: {s: {kv_data: {x: y}}}, configmapAttacher: {repository: quay.io/x/configmap-attacher}}",
			"attaches ConfigMaps to Rollouts only",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if said := refused(t, c.values); !strings.Contains(said, c.want) {
				t.Errorf("said %q, want %q", said, c.want)
			}
		})
	}
}

// TestClashesCanBeAllowed: in directories of their own, or by letting the last win.
func TestClashesCanBeAllowed(t *testing.T) {
	t.Parallel()
	const values = "{appName: a, configmaps: {c: {kv_data: {x: 1}}, d: {kv_data: {x: 2}}}, mount: {%s}}"
	r := only(t, "Deployment", fmt.Sprintf(values, "clashes: last"))
	sources := projected(t, r)
	if len(sources) != 2 || strings.Contains(fmt.Sprint(sources), "items") {
		t.Errorf("sources are %v", sources)
	}
	r = only(t, "Deployment", fmt.Sprintf(values, "layout: directories"))
	for i, path := range []string{"c/x", "d/x"} {
		if got := fmt.Sprint(projected(t, r)[i]); !strings.Contains(got, "path:"+path) {
			t.Errorf("source %d is %s, want %s", i, got, path)
		}
	}
}

func projected(t *testing.T, r *unstructured.Unstructured) []any {
	t.Helper()
	volumes := at(t, r, "spec", "template", "spec", "volumes").([]any)
	sources, _, _ := unstructured.NestedSlice(volumes[0].(map[string]any), "projected", "sources")
	return sources
}

// TestNothingToAttach: no ConfigMaps, no volume, no Job, no permissions.
func TestNothingToAttach(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"appName: a", "{appName: a, configmaps: null}", "{appName: a, configmaps: {}}"} {
		if text := render(t, values); strings.Contains(text, "volumes:") || strings.Contains(text, "kind: Job") || strings.Contains(text, "kind: Role") {
			t.Errorf("%s gives\n%s", values, text)
		}
	}
}

// TestAttachJob: its name follows what it does, it goes by itself, and it is
// called as the program expects.
func TestAttachJob(t *testing.T) {
	t.Parallel()
	job := only(t, "Job", minimal)
	cm := only(t, "ConfigMap", minimal).GetName()
	want := fmt.Sprintf("[attach --namespace shop --timeout 4m deployment/web configmap/%s --best-effort]", cm)
	if got := fmt.Sprint(container(t, job)["args"]); got != want {
		t.Errorf("args are %s, want %s", got, want)
	}
	if ttl, limit := at(t, job, "spec", "ttlSecondsAfterFinished"), at(t, job, "spec", "backoffLimit"); ttl != 100.0 || limit != 3.0 || job.GetNamespace() != "shop" {
		t.Errorf("Job is %v in %s", job.Object["spec"], job.GetNamespace())
	}
	for key, value := range map[string]string{
		"helm.sh/hook": "post-install,post-upgrade,post-rollback", "argocd.argoproj.io/hook": "Sync",
	} {
		if job.GetAnnotations()[key] != value {
			t.Errorf("annotation %s is %q, want %q", key, job.GetAnnotations()[key], value)
		}
	}
	other := only(t, "Job", strings.ReplaceAll(minimal, "x: y", "x: z")).GetName()
	newer := only(t, "Job", minimal, "--set", "configmapAttacher.tag=9").GetName()
	if job.GetName() == other || job.GetName() == newer {
		t.Errorf("Jobs that do something else have the same name: %s %s %s", job.GetName(), other, newer)
	}
	long := only(t, "Job", strings.ReplaceAll(minimal, "web", strings.Repeat("w", 63)))
	if len(long.GetName()) > 63 {
		t.Errorf("the name %s has %d characters", long.GetName(), len(long.GetName()))
	}
}

func container(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	return at(t, o, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
}

// TestOldAttacherIsCalledAsBefore: an image of the original, or of its drop-in,
// gets the original's arguments and environment.
func TestOldAttacherIsCalledAsBefore(t *testing.T) {
	t.Parallel()
	const values = "appName: web\nconfigmaps: {b: {kv_data: {x: y}}, a: {kv_data: {z: y}}}\nconfigmapAttacher: {repository: quay.io/x/configmap-attacher, tag: 1.0.3}\n"
	job := only(t, "Job", values)
	names := objects(t, "ConfigMap", values)
	want := fmt.Sprintf("[-rollout web -namespace shop -configmaps %s,%s]", names[0].GetName(), names[1].GetName())
	if got := fmt.Sprint(container(t, job)["args"]); got != want {
		t.Errorf("args are %s, want %s", got, want)
	}
	if got := fmt.Sprint(container(t, job)["env"]); !strings.Contains(got, "name:VERSION value:1.0.3") || !strings.Contains(got, "value:info") {
		t.Errorf("env is %s", got)
	}
}

// TestNotesWarn: with few revisions kept, the attach Job can come too late for
// content that comes back.
func TestNotesWarn(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]bool{
		"":                                    false,
		"workload: {revisionHistoryLimit: 1}": true,
		"{workload: {revisionHistoryLimit: 1}, revisions: {attach: controller}}": false,
	} {
		h := helmtest.New(t, "")
		args := []string{"install", "release", h.Chart("app"), "--dry-run=client", "-f", helmtest.ValuesFile(t, attachImage+minimal), "-f", helmtest.ValuesFile(t, more)}
		if text := h.Run(t, args...); strings.Contains(text, "WARNING: workload.revisionHistoryLimit is 1.") != want {
			t.Errorf("with %q a warning is wanted: %t; said\n%s", more, want, text)
		}
	}
}

// TestNoImageForTheJob: without an image the Job would never start, and Helm would wait for it. The chart fails at
// once instead, and names both ways out. A release that needs no Job needs no image.
func TestNoImageForTheJob(t *testing.T) {
	t.Parallel()
	const none = "configmapAttacher: {repository: \"\"}\n"
	said := refused(t, minimal+none)
	for _, want := range []string{"configmapAttacher.repository is empty", "set revisions.attach=controller", "configmapAttacher.repository=registry.example/team/lockstep"} {
		if !strings.Contains(said, want) {
			t.Errorf("said %s, want %s", said, want)
		}
	}
	render(t, minimal+none+"revisions: {attach: controller}\n")
	render(t, "appName: web\n"+none)
}

// TestControllerNeedsNoJob: neither Job nor permissions.
func TestControllerNeedsNoJob(t *testing.T) {
	t.Parallel()
	text := render(t, minimal+"revisions: {attach: controller}")
	for _, kind := range []string{"Job", "Role", "RoleBinding", "ServiceAccount", "ClusterRole"} {
		if strings.Contains(text, "kind: "+kind+"\n") {
			t.Errorf("there is a %s", kind)
		}
	}
}

// TestNamedByHand: who mounts an object by hand has it attached all the same; with
// the controller, whoever names it does.
func TestNamedByHand(t *testing.T) {
	t.Parallel()
	const values = `
appName: web
configmaps: {c: {use: none, kv_data: {x: y}}}
secrets: {s: {use: none, kv_data: {x: y}}}
volumes: [{name: c, configMap: {name: '{{ include "app.objectName" (dict "root" $ "group" "configmaps" "key" "c") }}'}}]
`
	const both = values + `env: [{name: S, valueFrom: {secretKeyRef: {key: x, name: '{{ include "app.objectName" (dict "root" $ "group" "secrets" "key" "s") }}'}}}]`
	job := fmt.Sprint(container(t, only(t, "Job", both))["args"])
	for _, kind := range []string{"ConfigMap", "Secret"} {
		if name := strings.ToLower(kind) + "/" + only(t, kind, both).GetName(); !strings.Contains(job, name) {
			t.Errorf("%s is not attached by %s", name, job)
		}
	}
	if said := refused(t, values); !strings.Contains(said, "secrets.s: use is none") {
		t.Errorf("said %q", said)
	}
	if text := render(t, values+"revisions: {attach: controller}"); !strings.Contains(text, "kind: Secret") {
		t.Error("the controller may find a user that this chart does not know")
	}
}

// TestTwoReleasesShareNothing: no object of one release has the name of an object
// of the other in the same place, whatever their names are joined to.
func TestTwoReleasesShareNothing(t *testing.T) {
	t.Parallel()
	type release struct{ namespace, app string }
	for name, releases := range map[string][]release{
		"of one name":               {{"one", "web"}, {"two", "web"}},
		"of names that join alike":  {{"a", "b-c"}, {"a-b", "c"}},
		"one beside its Job's home": {{"a", "b"}, {"jobs", "a-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := map[string]bool{}
			for _, r := range releases {
				for _, kind := range []string{"Job", "ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Rollout"} {
					for _, o := range objects(t, kind, minimal+"configmapAttacher: {namespace: jobs}\n", "-n", r.namespace, "--set", "appName="+r.app) {
						key := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
						if seen[key] {
							t.Errorf("both releases have %s", key)
						}
						seen[key] = true
					}
				}
			}
		})
	}
}

// TestVersionOverride: below 1.21 Kubernetes does not know the field.
func TestVersionOverride(t *testing.T) {
	t.Parallel()
	text := render(t, minimal+"kubeTargetVersionOverride: 1.20.5\n")
	if strings.Contains(text, "ttlSecondsAfterFinished") {
		t.Error("the field is rendered for Kubernetes 1.20")
	}
}

// TestPodTemplateOfBefore: what users of base-app rely on.
func TestPodTemplateOfBefore(t *testing.T) {
	t.Parallel()
	const minimal = minimal + "workload: {kind: Rollout}\nimage: {repository: nginx, tag: 1.14.1}\n"
	r := only(t, "Rollout", minimal)
	if r.GetName() != "web" || r.GetLabels()["app"] != "web" || at(t, r, "spec", "selector", "matchLabels", "app") != "web" {
		t.Errorf("name %s, labels %v", r.GetName(), r.GetLabels())
	}
	c := container(t, r)
	if c["name"] != "web" || c["image"] != "nginx:1.14.1" || c["imagePullPolicy"] != "Always" {
		t.Errorf("container is %v", c)
	}
	want := []any{map[string]any{"name": "configmaps-volume", "mountPath": "/etc/kubernetes/configmaps"}}
	if diff := cmp.Diff(want, c["volumeMounts"]); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	sum := at(t, r, "spec", "template", "metadata", "annotations").(map[string]any)["checksum/config"].(string)
	other := at(t, only(t, "Rollout", strings.ReplaceAll(minimal, "x: y", "x: z")), "spec", "template", "metadata", "annotations").(map[string]any)["checksum/config"]
	if len(sum) != 64 || sum == other {
		t.Errorf("checksum/config is %s, with other content %v", sum, other)
	}
}
