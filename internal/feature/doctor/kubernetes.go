package doctor

import (
	"context"
	"fmt"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// Lockstep is tested with these Kubernetes releases: docs/contributing/releases.md.
const (
	OldestKubernetes = "1.34"
	NewestKubernetes = "1.36"
)

// KubernetesFacts are about the Kubernetes release.
type KubernetesFacts struct {
	// Version is the one that the API server reports, such as "v1.36.1+k3s1".
	Version string
	Err     error
}

// readKubernetes queries the release.
func (f *Facts) readKubernetes(ctx context.Context, o Options) {
	f.Kubernetes.Version, f.Kubernetes.Err = o.Raw.Version(ctx)
}

func checkKubernetes(f Facts) Check {
	if f.Kubernetes.Err != nil {
		return unread(Kubernetes, f.Kubernetes.Err)
	}
	version, err := utilversion.ParseGeneric(f.Kubernetes.Version)
	if err != nil {
		return Check{Name: Kubernetes, Result: Warning, Found: fmt.Sprintf("the API server reports the version %q, which isn't a Kubernetes release", f.Kubernetes.Version), Do: "check which Kubernetes release it serves: Lockstep is tested with " + OldestKubernetes + " and " + NewestKubernetes}
	}
	oldest, newest := utilversion.MustParseGeneric(OldestKubernetes), utilversion.MustParseGeneric(NewestKubernetes)
	release := utilversion.MustParseGeneric(fmt.Sprintf("%d.%d", version.Major(), version.Minor()))
	c := Check{Name: Kubernetes, Result: Warning}
	switch {
	case release.LessThan(oldest):
		c.Found = fmt.Sprintf("Kubernetes %s is untested: %s is the oldest release that Lockstep is tested with, and Helm doesn't install its chart on older ones", version, OldestKubernetes)
		c.Do = "upgrade Kubernetes"
	case newest.LessThan(release):
		c.Found = fmt.Sprintf("Kubernetes %s is untested: %s is the newest release that this version of Lockstep is tested with", version, NewestKubernetes)
		c.Do = "check whether a newer version of Lockstep supports it, and try it on a test cluster first"
	default:
		return ok(Kubernetes, "Kubernetes %s", version)
	}
	return c
}
