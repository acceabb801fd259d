package program

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// recipe is everything that decides the bytes of a program.
type recipe struct {
	program Program
	version string   // without the leading v, such as 1.36.3
	flags   []string // of go build
	dir     string   // where go build runs
	sums    []byte   // go.mod and go.sum of the module
}

func newRecipe(root string, p Program) (recipe, error) {
	dir := filepath.Join(root, "lab", p.Dir)
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return recipe{}, fmt.Errorf("read the module of %s: %w", p.Name, err)
	}
	gosum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return recipe{}, fmt.Errorf("read the module of %s: %w", p.Name, err)
	}
	version, err := requiredVersion(gomod, p.Module)
	if err != nil {
		return recipe{}, fmt.Errorf("read the version of %s from %s/go.mod: %w", p.Name, dir, err)
	}
	flags, err := buildFlags(gomod)
	if err != nil {
		return recipe{}, fmt.Errorf("read the Kubernetes version from %s/go.mod: %w", dir, err)
	}
	return recipe{program: p, version: version, flags: flags, dir: dir, sums: append(gomod, gosum...)}, nil
}

// requiredVersion finds the version of a module in the text of a go.mod, which is the only
// place that defines versions.
func requiredVersion(gomod []byte, module string) (string, error) {
	line := regexp.MustCompile(`(?m)^(?:require\s+|\s+)` + regexp.QuoteMeta(module) + `\s+v(\S+)`)
	match := line.FindSubmatch(gomod)
	if match == nil {
		return "", fmt.Errorf("no required version of %s", module)
	}
	return string(match[1]), nil
}

// buildFlags are the same for all programs of a module, so one go build can make several of
// them. Kubernetes gets its version only from the linker; without it every client would see
// v0.0.0-master. Programs without the named variables ignore the settings.
func buildFlags(gomod []byte) ([]string, error) {
	link := "-s -w"
	if strings.Contains(string(gomod), "k8s.io/kubernetes/cmd/") {
		version, err := requiredVersion(gomod, "k8s.io/kubernetes")
		if err != nil {
			return nil, err
		}
		link += kubernetesVersion(version)
	}
	return []string{"-ldflags=" + link}, nil
}

func kubernetesVersion(version string) string {
	const variable = " -X k8s.io/component-base/version.git"
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return variable + "Version=v" + version + variable + "Major=" + major + variable + "Minor=" + minor
}

// path is where the built program is kept, such as
// bin/kube-apiserver-1.36.3-0a1b2c3d4e/kube-apiserver. The directory contains the key and
// the file has the plain name, so process listings are readable.
func (r recipe) path(cache string) string {
	name, _, _ := strings.Cut(r.program.Name, "@")
	return filepath.Join(cache, "bin", name+"-"+r.version+"-"+r.key(), name)
}

func (r recipe) key() string {
	sum := sha256.New()
	fmt.Fprintln(sum, r.program.Package, r.program.Assets, r.flags, runtime.GOOS, runtime.GOARCH, runtime.Version())
	sum.Write(r.sums)
	return hex.EncodeToString(sum.Sum(nil))[:10]
}
