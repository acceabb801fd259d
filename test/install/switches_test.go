package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/test/helmtest"
)

// switches are the values that decide on permissions.
type switches struct {
	reload, revisions, images, pods, observe bool
	// secrets are the namespaces whose Secrets are attached.
	secrets []string
	// listed: pull secrets and platforms are named; anyPlatform: the platforms are not.
	listed, anyPlatform bool
	// workers: a further kind is followed; only: these built-in ones, and not all.
	workers bool
	only    []string
	// admission: policies narrow what is written; env: in the other form.
	admission, env bool
	// namespaces are followed; none means all, or those with a label.
	namespaces []string
	selector   string
}

// values is how people would write them.
func (s switches) values() string {
	v := fmt.Sprintf(`
image: {repository: registry.example/lockstep}
reload: {enabled: %t}
revisions: {enabled: %t, secretNamespaces: [%s]}
podStrategies: {enabled: %t}
observe: %t
namespaces: [%s]
namespaceSelector: %q
`, s.reload, s.revisions, strings.Join(s.secrets, ", "), s.pods, s.observe, strings.Join(s.namespaces, ", "), s.selector)
	images := fmt.Sprintf("enabled: %t", s.images)
	if s.images {
		images += ", interval: 1s"
	}
	if s.listed {
		images += ", pullSecrets: [pull]"
	}
	if s.listed && !s.anyPlatform {
		images += ", platforms: [linux/amd64]"
	}
	if len(s.only) > 0 {
		v += "builtInKinds: [" + strings.ToLower(strings.Join(s.only, ", ")) + "]\n"
	}
	if s.workers {
		v += "kinds: [{kind: example.com/v1/Worker=spec.template, resource: workers}]\n"
	}
	if s.admission {
		v += "admissionPolicy: {enabled: true}\n"
	}
	return v + "images: {" + images + "}\n"
}

// moves reports whether workloads are moved.
func (s switches) moves() bool { return s.reload || s.images }

// valid: strategies for pods deliver ConfigMaps and Secrets.
func (s switches) valid() bool { return s.reload || !s.pods }

func (s switches) String() string {
	var on []string
	for name, is := range map[string]bool{
		"reload": s.reload, "revisions": s.revisions, "images": s.images, "pods": s.pods, "observe": s.observe, "listed": s.listed, "any platform": s.anyPlatform, "workers": s.workers,
		"admission": s.admission, "env": s.env, "only " + strings.Join(s.only, " "): len(s.only) > 0,
		"secrets": len(s.secrets) > 0, "namespaces": len(s.namespaces) > 0, "selector": s.selector != "",
	} {
		if is {
			on = append(on, name)
		}
	}
	return strings.Join(sorted(on), " ")
}

// combinations are all of them, except that nothing is listed where nothing uses it. The
// namespaces exist.
func combinations(namespaces []string) []switches {
	var all []switches
	each := []bool{false, true}
	for _, scope := range []switches{{}, {namespaces: namespaces}, {selector: "team=shop"}} {
		for _, reload := range each {
			for _, pods := range each {
				for _, revisions := range []switches{{}, {revisions: true}, {revisions: true, secrets: namespaces[:1]}} {
					for _, images := range []switches{{}, {images: true}, {images: true, listed: true}} {
						all = append(all, switches{
							reload: reload, pods: pods, revisions: revisions.revisions, secrets: revisions.secrets,
							images: images.images, listed: images.listed, namespaces: scope.namespaces, selector: scope.selector,
						})
					}
				}
			}
		}
	}
	for _, s := range all {
		if s.selector == "" && s.valid() {
			s.observe = true
			all = append(all, s)
		}
	}
	return all
}

// pairwise leaves as many combinations as it takes for every two values that occur together in some
// combination.
func pairwise(all []switches) []switches {
	pairs := func(s switches) map[[2]string]bool {
		values := []string{
			fmt.Sprint("reload ", s.reload), fmt.Sprint("pods ", s.pods), fmt.Sprint("observe ", s.observe), fmt.Sprint("scope ", s.namespaces, s.selector),
			fmt.Sprint("revisions ", s.revisions, s.secrets), fmt.Sprint("images ", s.images, s.listed),
		}
		found := map[[2]string]bool{}
		for i, a := range values {
			for _, b := range values[i+1:] {
				found[[2]string{a, b}] = true
			}
		}
		return found
	}
	missing := map[[2]string]bool{}
	for _, s := range all {
		maps.Copy(missing, pairs(s))
	}
	var left []switches
	for len(missing) > 0 {
		fresh := func(s switches) (n int) {
			for pair := range pairs(s) {
				if missing[pair] {
					n++
				}
			}
			return n
		}
		best := slices.MaxFunc(all, func(a, b switches) int { return fresh(a) - fresh(b) })
		for pair := range pairs(best) {
			delete(missing, pair)
		}
		left = append(left, best)
	}
	return left
}

// TestPairwise: a few combinations contain every two values that any contains.
func TestPairwise(t *testing.T) {
	t.Parallel()
	all := combinations([]string{"shop", "blog"})
	left := pairwise(all)
	if len(left) > 30 {
		t.Errorf("%d of %d combinations are left", len(left), len(all))
	}
	for reason, has := range map[string]func(switches) bool{
		"a refused combination":                   func(s switches) bool { return !s.valid() },
		"observe with Secrets":                    func(s switches) bool { return s.observe && len(s.secrets) > 0 },
		"a selector with named pull secrets":      func(s switches) bool { return s.selector != "" && s.listed },
		"strategies for pods in named namespaces": func(s switches) bool { return s.pods && len(s.namespaces) > 0 },
	} {
		if !slices.ContainsFunc(left, has) {
			t.Errorf("no combination has %s", reason)
		}
	}
}

// render has Helm render the chart for a release on the newest Kubernetes.
func render(t *testing.T, h *helmtest.Helm, release, namespace, values string) []*unstructured.Unstructured {
	t.Helper()
	return h.Installation(t, release, namespace, "1.36.0", values)
}
