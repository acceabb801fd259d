package kubeimagedeployer_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestExample: the example grants what these tests grant, its names are the original's, and its
// variables are understood and are those that the original has by default.
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
			Kind     string
			Metadata struct{ Name, Namespace string }
			Subjects []struct{ Name, Namespace string }
			Rules    []labtest.Rule
		}
		if err := yaml.Unmarshal(document, &head); err != nil {
			t.Fatal(err)
		}
		found[head.Kind] = true
		for _, at := range append(head.Subjects, head.Metadata) {
			if at.Name != kubeimagedeployer.Name || at.Namespace != kubeimagedeployer.Name && !strings.HasPrefix(head.Kind, "ClusterRole") && head.Kind != "Namespace" {
				t.Errorf("%s is about %s in namespace %q", head.Kind, at.Name, at.Namespace)
			}
		}
		switch head.Kind {
		case "ClusterRole":
			if diff := cmp.Diff(role(), head.Rules); diff != "" {
				t.Errorf("the ClusterRole of the example differs (-tested +example):\n%s", diff)
			}
		case "StatefulSet":
			checkVariables(t, document)
		}
	}
	if !found["Namespace"] || !found["ClusterRole"] || !found["StatefulSet"] {
		t.Errorf("the example has only %v", found)
	}
}

func checkVariables(t *testing.T, document []byte) {
	t.Helper()
	set := &appsv1.StatefulSet{}
	if err := yaml.UnmarshalStrict(document, set); err != nil {
		t.Fatal(err)
	}
	// The API server refuses to change these two of an installation that exists.
	labels := map[string]string{"app": kubeimagedeployer.Name, "name": kubeimagedeployer.Name}
	if !maps.Equal(set.Spec.Selector.MatchLabels, labels) || set.Spec.ServiceName != kubeimagedeployer.Name {
		t.Errorf("the StatefulSet selects %v, and its service is %s", set.Spec.Selector.MatchLabels, set.Spec.ServiceName)
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
	variables["HOME"] = "/root" // of the image
	if files := kubeimagedeployer.DockerConfigs(lookup); files[0] != file {
		t.Errorf("credentials are at %s, and read from %v", file, files)
	}
}
