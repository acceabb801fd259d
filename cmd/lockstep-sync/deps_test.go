package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// linked lists the packages that a program or package is made of.
func linked(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// The agent runs in every pod: what it links is paid for everywhere.
func TestTheAgentLinksNothingOfTheController(t *testing.T) {
	for _, pkg := range linked(t, ".") {
		for _, heavy := range []string{
			"sigs.k8s.io/controller-runtime", "k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/api/",
			"github.com/prometheus/client_golang",
			"github.com/lockstep-dev/lockstep/internal/cli", "github.com/lockstep-dev/lockstep/internal/server", "github.com/lockstep-dev/lockstep/internal/adapter/kube",
		} {
			if pkg == heavy || strings.HasPrefix(pkg, strings.TrimSuffix(heavy, "/")+"/") {
				t.Errorf("the agent links %s", pkg)
			}
		}
	}
}

// The pipeline's decisions know no client, no flags and no adapter.
func TestThePipelineKnowsNoAdapter(t *testing.T) {
	for _, pkg := range linked(t, "github.com/lockstep-dev/lockstep/internal/agent/feature/podsync") {
		if strings.Contains(pkg, "/internal/agent/adapter") || strings.HasPrefix(pkg, "k8s.io/") || strings.HasPrefix(pkg, "github.com/spf13") {
			t.Errorf("podsync links %s", pkg)
		}
	}
}

// limits are the programs and the most bytes that each may have as it is shipped.
func limits() map[string]int64 {
	return map[string]int64{"./cmd/lockstep": 46e6, "./cmd/lockstep-sync": 14e6}
}

// The shipped programs are static and stay under their limits.
func TestSize(t *testing.T) {
	for program, limit := range limits() {
		info, err := os.Stat(labtest.Binary(t, program))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f MB", program, float64(info.Size())/1e6)
		if info.Size() > limit {
			t.Errorf("%s: %d bytes are more than %.0f MB", program, info.Size(), float64(limit)/1e6)
		}
	}
}

// keptByReflection is an exported method that nothing calls. The linker keeps it only if it keeps all exported methods of
// all types, because some code looks up a method by a name that the linker doesn't know.
const keptByReflection = "reflect.Value.Methods"

// A template looks up methods by name. If any code of a program can execute one, the linker removes no exported method: the
// controller was 11 MB larger.
func TestTheLinkerRemovesUnusedMethods(t *testing.T) {
	_ = template.New("").Execute(io.Discard, nil) // so that this test's own program keeps them
	if self, err := os.Executable(); err != nil || !keepsUnusedMethods(t, self) {
		t.Fatalf("the linker removed %s although this program executes a template: choose another method (%v)", keptByReflection, err)
	}
	for program := range limits() {
		if keepsUnusedMethods(t, labtest.Binary(t, program)) {
			t.Errorf("%s: the linker removes no exported method because it keeps the last of these functions:\n%s", program, pathToReflection(t, program))
		}
	}
}

// keepsUnusedMethods looks for the name in the table of functions, which a stripped program contains too.
func keepsUnusedMethods(t *testing.T, file string) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(content, []byte("\x00"+keptByReflection+"\x00"))
}

// pathToReflection links the program again, and returns why the linker keeps the first function that looks up methods. Those
// after it may be a consequence.
func pathToReflection(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w -dumpdep", "-o", filepath.Join(t.TempDir(), "program"), program)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	users := map[string]string{}
	for line := range strings.Lines(string(out)) {
		user, used, _ := strings.Cut(strings.TrimSpace(line), " -> ")
		users[withoutFlags(used)] = withoutFlags(user)
		if !strings.Contains(used, "<ReflectMethod>") {
			continue
		}
		path := []string{withoutFlags(used)}
		for user := withoutFlags(user); user != ""; user = users[user] {
			path = append(path, user)
		}
		slices.Reverse(path)
		return strings.Join(path, "\n  -> ")
	}
	return "the linker names none"
}

// withoutFlags is the name of a symbol, which the linker may add words to: "reflect.Value.Method <ReflectMethod>".
func withoutFlags(symbol string) string {
	name, _, _ := strings.Cut(symbol, " <")
	return name
}
