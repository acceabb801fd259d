package kubernetesreloader_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lockstep-dev/lockstep/internal/dropin/kubernetesreloader"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestExample: the original's manifest and our example grant what these tests grant, and their
// arguments are understood.
func TestExample(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"testdata/original.yaml", "../../../examples/kubernetes-reloader.yaml"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			checkManifest(t, file)
		})
	}
}

func checkManifest(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	found := map[string]bool{}
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var head struct {
			Kind  string
			Rules []labtest.Rule
		}
		if err := yaml.Unmarshal(document, &head); err != nil {
			t.Fatal(err)
		}
		found[head.Kind] = true
		switch head.Kind {
		case "Role":
			if diff := cmp.Diff(role(), head.Rules); diff != "" {
				t.Errorf("the Role differs (-tested +manifest):\n%s", diff)
			}
		case "Deployment":
			checkArguments(t, document)
		}
	}
	if !found["Role"] || !found["Deployment"] {
		t.Errorf("the manifest has only %v", found)
	}
}

func checkArguments(t *testing.T, document []byte) {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(document, d); err != nil {
		t.Fatal(err)
	}
	args := strings.Split(strings.ReplaceAll(strings.Join(d.Spec.Template.Spec.Containers[0].Args, "\n"), "$(KUBERNETES_NAMESPACE)", "shop"), "\n")
	o, err := kubernetesreloader.Parse(args, func(string) (string, bool) { return "", false })
	if err != nil || o.Namespace != "shop" || o.StateName != stateName || o.Port != 8080 {
		t.Errorf("the arguments %q are read as %+v, %v", args, o, err)
	}
}
