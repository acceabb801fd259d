package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/feature/doctor"
)

// command runs a command line without an environment.
func command(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errors bytes.Buffer
	env := Environment{Stdout: &out, Stderr: &errors, Lookup: variables(nil), Now: time.Now}
	code = Run(t.Context(), args, env)
	return out.String(), errors.String(), code
}

// TestGoldenDoctor: what people read of each result.
func TestGoldenDoctor(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	checks := []doctor.Check{
		{Name: doctor.Leader, Result: doctor.OK, Found: "lockstep-7c9f4 leads"},
		{Name: doctor.Permissions, Result: doctor.Problem, Found: "1 of 31 permissions are missing", Details: []string{"patch statefulsets.apps in all namespaces: needed for rolling them"}, Do: "grant them to system:serviceaccount:lockstep-system:lockstep"},
		{Name: doctor.Clock, Result: doctor.Unknown, Found: "a line\nthat steers\x1b[2J the terminal"},
		{Name: doctor.References, Result: doctor.Warning, Found: "1 of 3 references lead to nothing", Details: []string{"deployment/web in namespace shop needs configmap/app, which does not exist", "and 7 more"}},
	}
	if err := printChecks(&text, Environment{Stdout: &text, Lookup: variables(nil)}, checks); err != nil {
		t.Fatal(err)
	}
	golden(t, "doctor.txt", text.Bytes())
	if err := verdict(checks); err == nil || err.Error() != "1 problem, 1 check could not be run" {
		t.Errorf("the verdict is %v", err)
	}
	if err := verdict([]doctor.Check{{Result: doctor.OK}, {Result: doctor.Warning}}); err != nil {
		t.Errorf("with a warning the verdict is %v", err)
	}
}

func TestDoctorUsage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"Argument": {[]string{"web"}, `unexpected argument "web"`},
		"Output":   {[]string{"-o", "xml"}, `--output "xml"`},
		"Timeout":  {[]string{"--timeout", "0s"}, "--timeout 0s: must be positive"},
		"CA":       {[]string{"--registry-ca", "x"}, "--registry-ca"},
		"Cluster":  {[]string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}, "no such file"},
	} {
		if _, stderr, code := command(t, append([]string{"doctor"}, tc.args...)...); code != exitUsage || !strings.Contains(stderr, tc.want) {
			t.Errorf("%s: exit code %d and %q, want %q", name, code, stderr, tc.want)
		}
	}
}

// TestUnderstand: what a container's arguments mean is what the controller makes of them.
func TestUnderstand(t *testing.T) {
	t.Parallel()
	has := func(all []access.Permission, text string) bool {
		return slices.ContainsFunc(all, func(r access.Permission) bool { return r.String() == text })
	}
	for name, tc := range map[string]struct {
		reason      string
		args        []string
		env         map[string]string
		ours        bool
		problem     string
		with, lacks string // a right
	}{
		"Plain":     {"the whole cluster", []string{"controller"}, nil, true, "", "patch deployments.apps in all namespaces", "create pods/eviction in all namespaces"},
		"NoCommand": {"the image has the entry point", []string{"controller", "--pod-strategies"}, nil, true, "", "create pods/eviction in all namespaces", "get serviceaccounts in all namespaces"},
		"Images":    {"credentials are read", []string{"controller", "--images"}, nil, true, "", "get serviceaccounts in all namespaces", "create pods/eviction in all namespaces"},
		"Some":      {"only what is watched", []string{"controller", "--namespaces=shop"}, nil, true, "", "watch secrets in shop", "watch secrets in all namespaces"},
		"Variable":  {"the environment stands for flags", []string{"controller"}, map[string]string{"LOCKSTEP_OBSERVE": "true"}, true, "", "create configmaps in own", "patch deployments.apps in all namespaces"},
		"Wrong":     {"it would not start", []string{"controller", "--quite=1s"}, nil, true, "did you mean --quiet?", "", ""},
		"Value":     {"neither with this", []string{"controller"}, map[string]string{"LOCKSTEP_QUIET": "x"}, true, "LOCKSTEP_QUIET", "", ""},
		"Kind":      {"neither with this", []string{"controller", "--kind=x"}, nil, true, "parse kind", "", ""},
		"Crossed":   {"each is right by itself", []string{"controller", "--quiet=2m", "--max-delay=1m"}, nil, true, "maximum delay 1m", "", ""},
		"Form":      {"neither with this", []string{"controller", "--form=x"}, nil, true, "--form", "", ""},
		"Labels":    {"neither with this", []string{"controller", "--namespace-selector=a b"}, nil, true, "--namespace-selector", "", ""},
		"Selected":  {"any namespace may get the labels", []string{"controller", "--namespace-selector=team=shop"}, nil, true, "", "patch deployments.apps in all namespaces", "create pods/eviction in all namespaces"},
		"Files":     {"they are in the container", []string{"controller", "--images", "--image-webhook-addr=:1", "--image-webhook-secret-file=/no/such", "--registry-ca=a:1=/no/such", "--docker-config=/no/such"}, nil, true, "", "get serviceaccounts in all namespaces", ""},
		"Agent":     {"another command", []string{"status"}, nil, false, "", "", ""},
		"Nothing":   {"the image decides", nil, nil, false, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ours := understand(tc.args, variables(tc.env))
			if ours != tc.ours || (got.Problem == "") != (tc.problem == "") || !strings.Contains(got.Problem, tc.problem) {
				t.Fatalf("%s: ours is %t, the problem %q", tc.reason, ours, got.Problem)
			}
			if tc.with == "" {
				return
			}
			permissions := got.Permissions("own")
			if !has(permissions, tc.with) || has(permissions, tc.lacks) {
				t.Errorf("%s: the permissions are %v, want %q and not %q", tc.reason, permissions, tc.with, tc.lacks)
			}
		})
	}
}

// TestDoctorPage: the page explains each check and each rule in the words of the code.
func TestDoctorPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "help", "doctor.md"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range doctor.Explanations() {
		want = append(want, "| `"+string(e.Name)+"` | "+e.Meaning+" |")
	}
	for _, e := range review.Explanations() {
		want = append(want, "| `"+string(e.Rule)+"` | "+string(e.Severity)+" | "+e.Meaning+" |")
	}
	got := regexp.MustCompile("(?m)^\\| `.*$").FindAllString(string(page), -1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tables of docs/help/doctor.md are not those of the code (-code +page):\n%s", diff)
	}
}
