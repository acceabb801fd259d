package kubeimagedeployer_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestExample: the example grants what these tests grant, and its variables are understood
// and are those that the original has by default.
func TestExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../examples/kube-image-deployer.yaml")
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
		case "ClusterRole":
			if diff := cmp.Diff(role(), head.Rules); diff != "" {
				t.Errorf("the ClusterRole of the example differs (-tested +example):\n%s", diff)
			}
		case "StatefulSet":
			checkVariables(t, document)
		}
	}
	if !found["ClusterRole"] || !found["StatefulSet"] {
		t.Errorf("the example has only %v", found)
	}
}

func checkVariables(t *testing.T, document []byte) {
	t.Helper()
	set := &appsv1.StatefulSet{}
	if err := yaml.UnmarshalStrict(document, set); err != nil {
		t.Fatal(err)
	}
	container := set.Spec.Template.Spec.Containers[0]
	variables := map[string]string{}
	for _, e := range container.Env {
		variables[e.Name] = e.Value
	}
	lookup := func(name string) (string, bool) {
		value, set := variables[name]
		return value, set
	}
	o, err := kubeimagedeployer.Parse(container.Args, lookup, os.Stderr)
	if err != nil || len(o.Warnings) > 0 || o.Interval != 10*time.Second || o.TTL != time.Minute || o.Words.Platform != "linux/amd64" || o.Words.Key != kubeimagedeployer.DefaultKey {
		t.Errorf("the variables %v are read as %+v, %v", variables, o, err)
	}
	file := container.VolumeMounts[0].MountPath + "/" + set.Spec.Template.Spec.Volumes[0].Secret.Items[0].Path
	if files := kubeimagedeployer.DockerConfigs(lookup); files[0] != file {
		t.Errorf("credentials are at %s, and read from %v", file, files)
	}
}
