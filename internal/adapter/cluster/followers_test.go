package cluster

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// deployment references ConfigMaps and Secrets, runs app:1.0 in the container web, and has
// annotations.
func deployment(namespace, name string, annotations map[string]string, sources ...input.ID) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1", Annotations: annotations}}
	web := corev1.Container{Name: "web", Image: "app:1.0"}
	for _, s := range sources {
		from := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: s.Name}}}
		if s.Kind == input.KindSecret {
			from = corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: s.Name}}}
		}
		web.EnvFrom = append(web.EnvFrom, from)
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{web}
	return d
}

// TestFollowers: those that follow an input take part in its change, however they do.
func TestFollowers(t *testing.T) {
	t.Parallel()
	c := NewCache(nil, CacheOptions{
		Kinds: kube.Kinds(), Sources: []input.Kind{input.KindConfigMap, input.KindSecret}, Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {},
	})
	c.hashers = kube.Hashers{Kinds: map[input.Kind]fingerprint.Hasher{input.KindConfigMap: {}, input.KindSecret: {}}}
	all, _ := c.areas.Of("")
	app, ca, token, off := input.ConfigMap("app"), input.ConfigMap("ca"), input.Secret("token"), input.ConfigMap("off")
	reload := func(value string) map[string]string { return map[string]string{settings.Reload: value} }
	image := func(value string) map[string]string { return map[string]string{settings.ImagePrefix + "web": value} }
	deleting := deployment("shop", "deleting", reload("auto"), app)
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	lent := deployment("shop", "lender", reload("auto"), app)
	for _, d := range []*appsv1.Deployment{
		deployment("shop", "auto", reload("auto"), app, ca, token, off), deployment("shop", "lists", reload("configmap/app, secret/token")),
		deployment("shop", "matches", reload("configmap/ap*, secret/tok*, configmap/o*")), deployment("shop", "both", reload("auto, configmap/a*, configmap/app"), app),
		deployment("shop", "never", reload("never"), app, ca), deployment("shop", "silent", nil, app, ca), deleting, lent,
		deployment("blog", "auto", reload("auto"), app, ca), deployment("byDefault", "silent", nil, app, ca),
		deployment("shop", "image", image("app:1.*")), deployment("blog", "image", image("docker.io/library/app:2.*")),
		deployment("shop", "other", image("other:1.*")), deployment("shop", "elsewhere", map[string]string{settings.ImagePrefix + "sidecar": "app:1.*"}),
	} {
		must(t, all.workloads[kube.Deployment().GroupKind()].Add(d))
	}
	canary := borrower("canary", "Deployment")
	canary.SetAnnotations(map[string]string{settings.Reload: "auto, configmap/app", settings.ImagePrefix + "web": "app:1.*"})
	must(t, all.workloads[kube.Rollout().GroupKind()].Add(canary))
	must(t, c.namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "byDefault", ResourceVersion: "1", Annotations: reload("auto")}}))
	for _, at := range []place{{"shop", app}, {"shop", ca}, {"shop", off}, {"blog", app}, {"blog", ca}, {"byDefault", ca}, {"unused", ca}} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: at.source.Name, ResourceVersion: "1"}}
		if at.source == off {
			cm.Annotations = reload("never")
		}
		must(t, all.sources[input.KindConfigMap].Add(cm))
	}
	must(t, all.sources[input.KindSecret].Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "token", ResourceVersion: "1"}, Type: corev1.SecretTypeServiceAccountToken}))

	for name, tc := range map[string]struct {
		reason string
		change input.Change
		want   string
	}{
		"Source":         {"by reference, name and pattern, each once, and the borrower instead of its lender", input.Change{Namespace: "shop", ID: app, Version: "1"}, "auto both canary lists matches"},
		"OtherNamespace": {"only those of the namespace", input.Change{Namespace: "blog", ID: app}, "auto"},
		"ByDefault":      {"the namespace's setting counts", input.Change{Namespace: "byDefault", ID: ca}, "silent"},
		"Shared":         {"those of all namespaces", input.Change{ID: ca}, "auto auto silent"},                                          //nolint:dupword // a workload of that name in each namespace
		"SharedOfSome":   {"a namespace without the source takes no part", input.Change{ID: app}, "auto auto both canary lists matches"}, //nolint:dupword // a workload of that name in each namespace
		"Refusing":       {"the source doesn't want it", input.Change{Namespace: "shop", ID: off}, ""},
		"Token":          {"only by its exact name", input.Change{Namespace: "shop", ID: token}, "lists"},
		"Unused":         {"nobody", input.Change{Namespace: "shop", ID: input.ConfigMap("unused")}, ""},
		"Image":          {"those that request the repository", input.Change{Namespace: "shop", ID: input.Image("docker.io/library/app")}, "canary image"},
		"SharedImage":    {"in all namespaces", input.Change{ID: input.Image("docker.io/library/app")}, "canary image image"}, //nolint:dupword // a workload of that name in each namespace
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var keys []kube.Key
			c.Followers(tc.change, func(w *kube.Workload) {
				keys = append(keys, w.Key)
				if w.Key.Name == "canary" && len(w.Containers) == 0 {
					t.Error("the borrower comes without its template")
				}
			})
			if got := namesOf(keys); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestListsAll: a namespace is known once it is watched and each kind there has been listed.
func TestListsAll(t *testing.T) {
	t.Parallel()
	c := NewCache(nil, CacheOptions{
		Kinds: []kube.Kind{kube.Deployment()}, Sources: []input.Kind{input.KindConfigMap}, Namespaces: []string{"blog", "shop"},
		Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {},
	})
	list := func(namespace string, sources bool) {
		a, _ := c.areas.Of(namespace)
		if sources {
			must(t, a.sources[input.KindConfigMap].Replace(nil, "1"))
		} else {
			must(t, a.workloads[kube.Deployment().GroupKind()].Replace(nil, "1"))
		}
	}
	expect := func(why string, shop, all bool) {
		t.Helper()
		if gotShop, gotAll := c.ListsAll("shop"), c.ListsAll(""); gotShop != shop || gotAll != all || c.ListsAll("other") {
			t.Errorf("%s: the namespace is listed: %t, all: %t, another one: %t", why, gotShop, gotAll, c.ListsAll("other"))
		}
	}
	expect("nothing is listed", false, false)
	list("shop", true)
	expect("only its sources", false, false)
	list("shop", false)
	expect("all of its kinds", true, false)
	list("blog", true)
	list("blog", false)
	expect("both namespaces", true, true)
	if nowhere := NewCache(nil, CacheOptions{Selector: labels.Everything(), Vocabulary: settings.Native{}, Now: time.Now}); nowhere.ListsAll("") {
		t.Error("no namespace is watched, and all are listed")
	}
}

// TestAwaitAfterProgress: a decision on an outdated copy is woken at once.
func TestAwaitAfterProgress(t *testing.T) {
	t.Parallel()
	l := newLending(t)
	deployments := l.mirrorOf(kube.Deployment())
	must(t, deployments.Add(deployment("shop", "web", nil)))
	old, _ := l.Workload(key(kube.Deployment(), "web"))
	clear(l.woken)
	l.AwaitHealth(old)
	if l.woken["web"] != 0 {
		t.Error("woken, and nothing has happened")
	}
	done := deployment("shop", "web", nil)
	done.ResourceVersion, done.Status = "2", appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	must(t, deployments.Update(done))
	if l.woken["web"] != 1 {
		t.Errorf("it is done, and woken %d times", l.woken["web"])
	}
	l.AwaitHealth(old)
	if l.woken["web"] != 2 {
		t.Errorf("the decision was on an older copy, and it is woken %d times", l.woken["web"])
	}
}
