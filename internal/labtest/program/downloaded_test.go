package program

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDownloaded uses scripts that say a version: the lab has the programs of two
// releases only, and none that is too old.
func TestDownloaded(t *testing.T) {
	const etcd = "etcd Version: 3.6.8\nGit SHA: abc"
	cases := map[string]struct {
		reason string
		files  map[string]string // what each program says of itself
		want   []string
		err    string
	}{
		"as setup-envtest makes it": {
			reason: "the lab's release goes with its own programs",
			files:  map[string]string{"etcd": etcd, "kube-apiserver": "Kubernetes v1.36.3", "kubectl": "no such flag"},
			want:   []string{"etcd 3.6.8", "kube-apiserver 1.36.3"},
		},
		"with controllers": {
			reason: "a controller manager that is there need not be built",
			files:  map[string]string{"etcd": etcd, "kube-apiserver": "Kubernetes v1.36.3", "kube-controller-manager": "Kubernetes v1.36.3"},
			want:   []string{"etcd 3.6.8", "kube-apiserver 1.36.3", "kube-controller-manager 1.36.3"},
		},
		"newer": {
			reason: "a controller manager may be older than the API server",
			files:  map[string]string{"etcd": etcd, "kube-apiserver": "Kubernetes v1.37.0"},
			want:   []string{"etcd 3.6.8", "kube-apiserver 1.37.0"},
		},
		"older": {
			reason: "1.36's controller manager is newer than this API server, so that 1.34's is built",
			files:  map[string]string{"etcd": etcd, "kube-apiserver": "Kubernetes v1.35.2"},
			want:   []string{"etcd@1.34 3.6.8", "kube-apiserver@1.34 1.35.2"},
		},
		"too old":   {files: map[string]string{"etcd": etcd, "kube-apiserver": "Kubernetes v1.33.4"}, err: "its kube-apiserver is 1.33.4, and Lockstep supports Kubernetes 1.34 and newer"},
		"no server": {files: map[string]string{"etcd": etcd}, err: `there is no kube-apiserver: name a directory with etcd and kube-apiserver, such as "setup-envtest use -p path" prints`},
		"empty":     {err: "there is no etcd: "},
		"no version": {
			reason: "something else has the name",
			files:  map[string]string{"etcd": "hello", "kube-apiserver": "Kubernetes v1.36.3"},
			err:    `ask etcd for its version: "hello"`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, says := range c.files {
				write(t, filepath.Join(dir, name), "#!/bin/sh\ncat <<'EOF'\n"+says+"\nEOF\n")
				if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ReadDownloaded(t.Context(), dir)
			if c.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), DownloadedEnv+"="+dir+": "+c.err) {
					t.Errorf("%s: error %v, want %q", c.reason, err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for name, p := range got.Programs {
				list = append(list, name+" "+p.Version)
			}
			slices.Sort(list)
			if diff := cmp.Diff(c.want, list); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
