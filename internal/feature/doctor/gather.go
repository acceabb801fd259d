package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/adapter/killswitch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/review"
)

// Options set what is checked.
type Options struct {
	Client client.Client
	Raw    access.Raw
	// Namespace, State and Lease are where the installation keeps its own objects; empty
	// State and Lease stand for those of its flags.
	Namespace, State, Lease string
	// Version is this program's.
	Version string
	Now     func() time.Time
	Nearest review.Nearest
	// Elsewhere is as in Hints.
	Elsewhere string
	// Understand parses the arguments of a controller's Deployment.
	Understand installation.Understand
	// Ping queries whether a registry answers, in plain HTTP if configured so.
	Ping func(ctx context.Context, host string, configured installation.Configured) error
	// Watched are the namespaces whose workloads are checked; none means all that the
	// controller watches.
	Watched []string
	// named is true when a user named them.
	named bool
}

// pings bounds how many registries are queried at once, and pingTimeout how long one may
// take.
const (
	pings       = 8
	pingTimeout = 10 * time.Second
)

// Gather reads the facts. It fails only when the API server cannot be reached.
func Gather(ctx context.Context, o Options) (Facts, error) {
	f := Facts{Namespace: o.Namespace, Version: o.Version, Hints: Hints{Nearest: o.Nearest, Elsewhere: o.Elsewhere}}
	f.Clock.Times, f.Clock.Err = o.Raw.Time(ctx, o.Now)
	if _, lost := errors.AsType[*url.Error](f.Clock.Err); lost {
		return f, f.Clock.Err
	}
	f.Now = o.Now()
	f.readKubernetes(ctx, o)
	configured := f.readInstallation(ctx, o)
	if lease := cmp.Or(o.Lease, configured.Lease); lease != "" {
		f.Controller.Leader, f.Controller.Led, f.Controller.LeaderErr = access.ReadLeader(ctx, o.Client, client.ObjectKey{Namespace: o.Namespace, Name: lease})
	}
	f.Record.Stored, f.Record.Err = ledger.ReadAll(ctx, o.Client, client.ObjectKey{Namespace: o.Namespace, Name: cmp.Or(o.State, configured.State)}, "")
	f.Controller.Stop, _, f.Controller.StopErr = killswitch.Read(ctx, o.Client, o.Namespace)
	f.readKey(ctx, o, configured.Key)
	f.readKinds(o, configured)
	namespaces := f.readNamespaces(ctx, o)
	f.Controller.Notices.Chosen = namespaces.chosen()
	if configured.Permissions != nil {
		permissions := f.relevant(configured.Permissions(o.Namespace), configured.Kinds, namespaces)
		f.Permissions.Asked, f.Permissions.Main = len(permissions), mainOf(permissions)
		f.Permissions.Missing, f.Permissions.Err = access.Review(ctx, o.Client, f.Controller.Installation.Account, permissions)
	}
	f.readPrograms(ctx, o, configured, namespaces)
	o.named = len(o.Watched) > 0
	o.Watched = f.within(o.Watched, configured, namespaces)
	f.readWorkloads(ctx, o, configured, namespaces)
	f.readBeyond(ctx, o, configured, namespaces)
	f.readOff(ctx, o, configured, namespaces)
	f.readSources(ctx, o)
	f.readPending(ctx, o)
	f.Registries = f.askRegistries(ctx, o, configured)
	return f, nil
}

// readInstallation finds the controller's Deployment. Without one, it assumes a controller
// without flags.
func (f *Facts) readInstallation(ctx context.Context, o Options) installation.Configured {
	usual, _ := o.Understand([]string{"controller"}, func(string) (string, bool) { return "", false })
	usual.Permissions = nil
	found, err := o.Understand.Find(ctx, o.Client, o.Namespace)
	switch {
	case err != nil:
		f.Controller.Err = err
		return usual
	case len(found) == 0:
		return usual
	}
	one := found[0]
	f.Controller.Installation = installationOf(one)
	for _, other := range found[1:] {
		if other.Lease != "" && other.Lease == one.Lease && other.IsActive() {
			f.Controller.Rivals = append(f.Controller.Rivals, "deployment/"+other.Name)
		}
	}
	if one.Problem != "" {
		return usual
	}
	f.readPods(ctx, o, one.Deployment, one.ProbePort)
	f.readNotices(ctx, o, one.Deployment, one.NotifyFile)
	return one.Configured
}

func installationOf(d installation.Found) Installation {
	i := Installation{
		Deployment: d.Name, Problem: d.Problem, Wanted: kube.Deployment().Replicas(d.Deployment), Ready: int(d.Status.ReadyReplicas),
		Lease: d.Lease, ReloadOn: d.Reload, ImagesOn: d.Images, PodsOn: d.Pods, Updated: int(d.Status.UpdatedReplicas), OnHost: d.Spec.Template.Spec.HostNetwork,
		Account: access.Account{Namespace: d.Namespace, Name: d.Spec.Template.Spec.ServiceAccountName},
	}
	if i.Account.Name == "" {
		i.Account.Name = "default"
	}
	return i
}

func (f *Facts) readPods(ctx context.Context, o Options, d *appsv1.Deployment, port string) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		f.Controller.Installation.PodsErr = err
		return
	}
	for object, err := range pages.Items(ctx, o.Client, &corev1.PodList{}, client.InNamespace(o.Namespace), client.MatchingLabelsSelector{Selector: selector}) {
		if err != nil {
			f.Controller.Installation.PodsErr = fmt.Errorf("list pods in %s: %w", o.Namespace, err)
			return
		}
		found, _ := object.(*corev1.Pod)
		if phase := found.Status.Phase; phase == corev1.PodFailed || phase == corev1.PodSucceeded {
			continue // It was evicted, for example, and another one replaces it.
		}
		pod := Pod{Name: found.Name}
		for _, c := range found.Status.Conditions {
			pod.Ready = pod.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		pod.Report, pod.ReportErr = readReport(ctx, o, pod.Name, port)
		f.Controller.Installation.Pods = append(f.Controller.Installation.Pods, pod)
	}
}

// readReport queries a pod's readiness report.
func readReport(ctx context.Context, o Options, pod, port string) ([]string, error) {
	if port == "" {
		return nil, errors.New("it doesn't serve probes")
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	status, text, err := o.Raw.FromPod(ctx, access.PodPort{Namespace: o.Namespace, Pod: pod, Port: port}, "/readyz?verbose")
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "[") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("it answered with status %d", status)
	}
	return lines, nil
}

// readKinds checks which kinds the cluster has.
func (f *Facts) readKinds(o Options, c installation.Configured) {
	for _, kind := range c.Kinds {
		_, err := o.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil && !meta.IsNoMatchError(err) {
			f.Kinds.Err = fmt.Errorf("find %s: %w", kind.Name(), err)
			return
		}
		f.Kinds.Served = append(f.Kinds.Served, Served{Name: kind.Name(), Here: err == nil, BuiltIn: kind.Typed.Object != nil, Custom: kind.Custom})
	}
}

// relevant are the permissions without those about kinds and namespaces that don't exist
// in the cluster.
func (f *Facts) relevant(permissions []access.Permission, kinds []kube.Kind, all namespaces) []access.Permission {
	absent := map[string]bool{}
	for i, served := range f.Kinds.Served {
		plural, _ := meta.UnsafeGuessKindToResource(kinds[i].GroupVersionKind)
		absent[plural.GroupResource().String()] = !served.Here
	}
	return slices.DeleteFunc(permissions, func(r access.Permission) bool {
		return absent[r.Resource.String()] || all != nil && r.Namespace != corev1.NamespaceAll && !all.has(r.Namespace)
	})
}

// mainOf counts the permissions of each use that a controller can't work without.
func mainOf(permissions []access.Permission) map[string]int {
	uses := map[string]int{}
	for _, r := range permissions {
		if r.Main {
			uses[r.Use]++
		}
	}
	return uses
}

// askRegistries queries each registry of a followed image once.
func (f *Facts) askRegistries(ctx context.Context, o Options, c installation.Configured) map[string]error {
	answers := map[string]error{}
	for _, w := range f.Workloads.All {
		for _, request := range w.Intent.Images {
			answers[request.Image.Repository.Host] = nil
		}
	}
	var (
		mu     sync.Mutex
		asking sync.WaitGroup
	)
	slots := make(chan struct{}, pings)
	for _, host := range sortedKeys(answers) {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, pingTimeout)
			defer cancel()
			err := o.Ping(ctx, host, c)
			mu.Lock()
			defer mu.Unlock()
			answers[host] = err
		})
	}
	asking.Wait()
	return answers
}
