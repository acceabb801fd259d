package commandline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// KubeconfigUsage is the help of --kubeconfig.
const KubeconfigUsage = "kubeconfig file (default $KUBECONFIG; if that is not set, ~/.kube/config; else the pod's service account)"

// Kubeconfig returns the files that describe the cluster, as kubectl finds them: that of the
// flag, those of $KUBECONFIG, or ~/.kube/config. None means the pod's service account. If none
// of the files in $KUBECONFIG exists, that is an error: a user who sets it doesn't expect
// another cluster.
func Kubeconfig(flag string, lookup func(string) (string, bool)) ([]string, error) {
	if flag != "" {
		return []string{flag}, nil
	}
	if list, _ := lookup("KUBECONFIG"); list != "" {
		return named(list)
	}
	home, _ := lookup("HOME")
	file := filepath.Join(home, ".kube", "config")
	if home == "" || isMissing(file) {
		return nil, nil
	}
	return []string{file}, nil
}

func named(list string) ([]string, error) {
	files := filepath.SplitList(list)
	for _, file := range files {
		// The loader reports files that exist but cannot be read.
		if file != "" && !isMissing(file) {
			return files, nil
		}
	}
	return nil, fmt.Errorf("KUBECONFIG=%s: no such file", list)
}

func isMissing(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}
