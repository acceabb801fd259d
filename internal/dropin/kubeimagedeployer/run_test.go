package kubeimagedeployer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestClusterConfig: the pod's account comes first, then the file that is named, then that of
// the home; KUBECONFIG is not read.
func TestClusterConfig(t *testing.T) {
	home := t.TempDir()
	write := func(name, server string) string {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		text := "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: '" + server + "'}}]}"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write(".kube/config", "https://home")
	named := write("named", "https://named")
	t.Setenv("KUBECONFIG", write("variable", "https://variable"))
	lookup := func(string) (string, bool) { return home, true }
	outside := func() (*rest.Config, error) { return nil, rest.ErrNotInCluster }
	inPod := func() (*rest.Config, error) {
		return &rest.Config{Host: "https://pod", BearerTokenFile: "token"}, nil
	}
	for name, tc := range map[string]struct {
		file string
		in   func() (*rest.Config, error)
		want string
	}{
		"Pod": {named, inPod, "https://pod"}, "Named": {named, outside, "https://named"}, "Home": {"", outside, "https://home"},
	} {
		config, err := clusterConfig(tc.file, lookup, tc.in)
		if err != nil || config.Host != tc.want || config.QPS != -1 {
			t.Errorf("%s: %v, %v; want %s", name, config, err, tc.want)
		}
	}
	if config, err := clusterConfig("", lookup, inPod); err != nil || config.BearerTokenFile != "token" {
		t.Errorf("the token is not read again: %v, %v", config, err)
	}
	broken := func() (*rest.Config, error) { return nil, errors.New("no certificate") }
	if _, err := clusterConfig(named, lookup, broken); err == nil {
		t.Error("a pod whose account cannot be read uses another cluster")
	}
}

// TestDotEnvThatCannotBeRead: it is told, without what is in it.
func TestDotEnvThatCannotBeRead(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := loadDotEnv(); got != nil {
		t.Errorf("no file: %q", got)
	}
	if err := os.WriteFile(".env", []byte("AWS_SECRET_ACCESS_KEY secret-value\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(loadDotEnv(), ""); got == "" || strings.Contains(got, "secret") {
		t.Errorf("it is told %q", got)
	}
}
