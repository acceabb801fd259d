package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEveryProgramIsAToolOfItsModule(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range All() {
		if seen[p.Name] {
			t.Errorf("%s is listed twice", p.Name)
		}
		seen[p.Name] = true
		gomod, err := os.ReadFile(filepath.Join(root, "lab", p.Dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !isTool(string(gomod), p.Package) {
			t.Errorf("lab/%s/go.mod has no tool line for %s", p.Dir, p.Package)
		}
		if r, err := newRecipe(root, p); err != nil || r.version == "" {
			t.Errorf("recipe of %s: version %q, error %v", p.Name, r.version, err)
		}
	}
}

func isTool(gomod, pkg string) bool {
	return strings.Contains(gomod, "tool "+pkg+"\n") || strings.Contains(gomod, "\n\t"+pkg+"\n")
}

func TestFindNamesWhatThereIs(t *testing.T) {
	_, err := Find("kube-proxy")
	if err == nil || !strings.Contains(err.Error(), `"kube-proxy"`) || !strings.Contains(err.Error(), "kube-apiserver@1.34") {
		t.Errorf("error is %v, want the wrong name and all right ones", err)
	}
}

func TestRequiredVersion(t *testing.T) {
	cases := map[string]struct {
		reason string
		gomod  string
		want   string
	}{
		"in a block":    {reason: "the usual form", gomod: "require (\n\ta.b/c v1.2.3 // indirect\n)", want: "1.2.3"},
		"alone":         {reason: "a module with one requirement", gomod: "require a.b/c v1.2.3\n", want: "1.2.3"},
		"longer path":   {reason: "a.b/c/d is another module", gomod: "require a.b/c/d v1.2.3\n"},
		"only replaced": {reason: "the left side of a replacement is no requirement", gomod: "replace (\n\ta.b/c => a.b/x v1.2.3\n)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := requiredVersion([]byte(c.gomod), "a.b/c")
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%s: got %q, error %v, want %q", c.reason, got, err, c.want)
			}
		})
	}
}

func TestKubernetesLearnsItsVersionFromTheLinker(t *testing.T) {
	gomod := []byte("tool k8s.io/kubernetes/cmd/kube-apiserver\nrequire k8s.io/kubernetes v1.36.3\n")
	got, err := buildFlags(gomod)
	if err != nil {
		t.Fatal(err)
	}
	const variable = "k8s.io/component-base/version.git"
	want := []string{"-ldflags=-s -w -X " + variable + "Version=v1.36.3 -X " + variable + "Major=1 -X " + variable + "Minor=36"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
}

func TestKeyChangesWithWhatDecidesTheBytes(t *testing.T) {
	base := recipe{program: Program{Name: "p", Package: "a.b/p"}, flags: []string{"-x"}, sums: []byte("sums")}
	others := map[string]func(*recipe){
		"package": func(r *recipe) { r.program.Package = "a.b/q" },
		"assets":  func(r *recipe) { r.program.Assets = []string{"*.yaml"} },
		"flags":   func(r *recipe) { r.flags = []string{"-y"} },
		"sums":    func(r *recipe) { r.sums = []byte("other sums") },
	}
	for name, change := range others {
		other := base
		change(&other)
		if other.key() == base.key() {
			t.Errorf("another %s has the same key", name)
		}
	}
	moved := base
	moved.dir = "/another/clone"
	if moved.key() != base.key() {
		t.Error("the place of the clone changes the key")
	}
}

func TestExecutable(t *testing.T) {
	cases := map[string]string{
		"k8s.io/kubernetes/cmd/kube-apiserver": "kube-apiserver",
		"go.etcd.io/etcd/server/v3":            "server",
		"a.b/v":                                "v",
		"a.b/vim9":                             "vim9",
	}
	for pkg, want := range cases {
		if got := executable(pkg); got != want {
			t.Errorf("executable of %s is %s, want %s", pkg, got, want)
		}
	}
}

func TestRough(t *testing.T) {
	cases := map[time.Duration]string{
		10 * time.Second:               "10 seconds",
		70 * time.Second:               "a minute",
		6*time.Minute + 40*time.Second: "7 minutes",
	}
	for d, want := range cases {
		if got := Rough(d); got != want {
			t.Errorf("%s in words is %q, want %q", d, got, want)
		}
	}
}

func TestFirstBuildsFollowTheCores(t *testing.T) {
	programs := []Built{{Program: Program{FirstBuild: 5 * time.Minute}}, {Program: Program{FirstBuild: time.Minute}}}
	for cores, want := range map[int]time.Duration{0: 12 * time.Minute, 1: 12 * time.Minute, 2: 6 * time.Minute, 4: 3 * time.Minute, 64: 90 * time.Second} {
		if got := FirstBuilds(programs, cores); got != want {
			t.Errorf("on %d cores: %s, want %s", cores, got, want)
		}
	}
}
