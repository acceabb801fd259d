package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
)

// imagesTable are the flags of "lockstep images".
type imagesTable struct {
	kube         kubeOptions
	images       imagesOptions
	namespace    string
	all          bool
	kinds        []string
	output       outputOptions
	installation installationOptions
	// controller is the address of its metrics.
	controller string
}

func newImages(env Environment) *cobra.Command {
	var o imagesTable
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List the images that workloads follow, with the newest ones",
		Long: `List the containers with an annotation image.lockstep.dev/CONTAINER: the image that each runs, the
newest image that matches the annotation, and the controller's decision.

The command queries the registries now, with the pods' pull secrets if you have permission to read
them, then with Docker's configuration. STATE is the reason on the controller's record. Without
permission to read the record, no image counts as delivered. If the flags of the controller exclude
the workload, STATE is NotWatched, KindOff or ImagesOff.

NEXT is the time of the controller's next check. For that, set --controller to the address of its
metrics; of several replicas, use the leader's.`,
		Example: `  lockstep images -n shop
  lockstep images -A -o json

  # with the time of the next check
  kubectl -n lockstep-system port-forward deployment/lockstep 8080 &
  lockstep images -n shop --controller http://127.0.0.1:8080`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.installation.namespace = controllerNamespace(o.installation.namespace)
			return o.run(cmd.Context(), env)
		},
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.images.reads.bind(fs)
	o.images.bindDefaultPlatform(fs)
	o.images.bindRegistries(fs)
	fs.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the workloads (default that of the kubeconfig's context)")
	fs.BoolVarP(&o.all, "all-namespaces", "A", false, "workloads of all namespaces")
	fs.StringArrayVar(&o.kinds, "kind", nil, "a further kind of workload, as group/version/Kind=path.to.template; may be repeated")
	o.output.bind(cmd)
	o.installation.bind(fs)
	fs.StringVar(&o.controller, "controller", "", "address of the controller's metrics, such as http://127.0.0.1:8080, to show when it checks each image next")
	return cmd
}

// imageRow is one container.
type imageRow struct {
	Workload  string `json:"workload"`
	Namespace string `json:"namespace"`
	Container string `json:"container"`
	Spec      string `json:"spec"`
	Current   string `json:"current"`
	Latest    string `json:"latest,omitempty"`
	// Since is when Lockstep rolled out the current image.
	Since *time.Time `json:"since,omitempty"`
	// NextCheck is when the controller checks the image next.
	NextCheck *time.Time `json:"nextCheck,omitempty"`
	// State is a reason; `problem` is the registry's error.
	State   string `json:"state"`
	Problem string `json:"problem,omitempty"`
}

func (o *imagesTable) run(ctx context.Context, env Environment) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	kinds, err := allKinds(o.kinds)
	if err != nil {
		return usageError{err}
	}
	registries, err := o.images.registries()
	if err != nil {
		return usageError{err}
	}
	words, err := o.images.words(settings.Defaults{})
	if err != nil {
		return usageError{err}
	}
	c, err := o.kube.client()
	if err != nil {
		return err
	}
	if o.namespace == "" && !o.all {
		o.namespace = o.kube.namespace()
	}
	next, err := readSchedule(ctx, o.controller)
	if err != nil {
		return err
	}
	look := &imagesLook{
		options: o, words: words, client: c, env: env, schedule: next,
		resolver:    registries.Resolver(env.Version),
		credentials: registries.UserCredentials(c),
	}
	rows, err := look.rows(ctx, kinds)
	if err != nil {
		return err
	}
	for _, err := range look.denied {
		_ = say(env.Stderr, "%s", err)
	}
	workloads := listedOf(rows, func(r imageRow) listed { return listed{r.Namespace, r.Workload} })
	return o.output.list(env.Stdout, rows, workloads, func(to io.Writer) error { return printImages(to, rows, env.Now(), o.output.isWide()) })
}

// imagesLook is one run of the command.
type imagesLook struct {
	options     *imagesTable
	words       settings.Native
	client      client.WithWatch
	resolver    *imagewatch.Resolver
	credentials func(*kube.Workload) (keychain.Source, string)
	env         Environment
	schedule    schedule
	serves      ask.Serves
	// entries are the record's entries, empty without permission to read it.
	entries map[kube.Key]record.Entry
	// denied lists the kinds that may not be listed.
	denied []error
}

// imagesAtATime limits how many images are queried at once.
const imagesAtATime = 64

// rows reads the workloads from the API server and queries the registries for their images,
// concurrently.
func (l *imagesLook) rows(ctx context.Context, kinds []kube.Kind) ([]imageRow, error) {
	var (
		asking  sync.WaitGroup
		results []*imageRow
	)
	var workloads []*kube.Workload
	for _, kind := range kinds {
		found, err := l.workloads(ctx, kind)
		switch {
		case apierrors.IsForbidden(err):
			l.denied = append(l.denied, err)
		case err != nil:
			return nil, err
		}
		workloads = append(workloads, found...)
	}
	if len(workloads) == 0 && len(l.denied) > 0 {
		return nil, errors.Join(l.denied...)
	}
	heard, stored, err := l.options.installation.reader(l.client, kinds, l.env).Heard(ctx, l.options.namespace)
	if err != nil {
		return nil, err
	}
	l.entries, l.serves = stored.Entries, heard.Serves
	slots := make(chan struct{}, imagesAtATime)
	for _, w := range resolved(workloads) {
		intent := l.words.Intent(w.Annotations, nil)
		for _, request := range intent.Images {
			row := &imageRow{}
			results = append(results, row)
			asking.Go(func() {
				slots <- struct{}{}
				*row = l.row(ctx, w, intent, request)
				<-slots
			})
		}
	}
	asking.Wait()
	rows := make([]imageRow, len(results))
	for i, row := range results {
		rows[i] = *row
	}
	return rows, ctx.Err()
}

// resolved are the workloads with the templates that they borrow. It omits lenders, and
// workloads whose lender isn't listed.
func resolved(all []*kube.Workload) []*kube.Workload {
	view := cluster.NewView(kube.Hashers{})
	for _, w := range all {
		view.PutWorkload(w)
	}
	var found []*kube.Workload
	for _, listed := range all {
		if w, ok := view.Workload(listed.Key); ok && w.Problem == "" {
			found = append(found, w)
		}
	}
	return found
}

// workloads lists those of a kind. A kind that isn't installed has none.
func (l *imagesLook) workloads(ctx context.Context, kind kube.Kind) ([]*kube.Workload, error) {
	var found []*kube.Workload
	for o, err := range pages.Items(ctx, l.client, kind.NewList(), client.InNamespace(l.options.namespace)) {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Name(), err)
		}
		w, err := kube.SlimWorkload(kind, o, l.words)
		if err != nil {
			return nil, err
		}
		if w.Problem == "" {
			found = append(found, w)
		}
	}
	return found, nil
}

func (l *imagesLook) row(ctx context.Context, w *kube.Workload, intent settings.Intent, request settings.ImageRequest) imageRow {
	at, ok := w.ImageOf(request.Container)
	row := imageRow{
		Workload: w.Kind.Name() + "/" + w.Key.Name, Namespace: w.Key.Namespace, Container: request.Container,
		Spec: request.Image.String(), Current: at.Image,
	}
	next := l.schedule.of(w.Key, request.Container)
	if !next.At.IsZero() {
		row.NextCheck = &next.At
	}
	if next.Refused != "" {
		row.State, row.Problem = string(input.Unresolved), next.Refused
		return row
	}
	if !ok {
		row.State, row.Problem = "InvalidAnnotation", "the pod template has no container "+request.Container
		return row
	}
	known := l.entries[w.Key]
	if known.UID != w.UID {
		known.Inputs = nil
	}
	o := images.Observe(w, request, intent, known, l.env.Now())
	found, err := l.resolver.Resolve(ctx, images.Question(w, request, o.Template.Has, l.credentials))
	if err != nil {
		row.Problem = err.Error()
	} else {
		o.Found = images.Pin{Tag: found.Tag, Digest: found.Digest}
		row.Latest = found.Tag + "@" + found.Digest
	}
	v := images.Decide(o)
	row.State = string(v.Reason)
	if v.Bar != "" {
		row.State = string(v.Bar)
	}
	if o.Reverted && !o.Released {
		row.State = "Undone"
	}
	if state := l.serves.State(ask.Report{Reason: row.State, From: ask.FromEstimate}, w.Key, false, true); state.From == ask.FromFlags {
		row.State = state.Reason
	}
	if _, ours := w.Shown[input.Image(request.Container)]; ours && !w.RolledOutAt.IsZero() {
		row.Since = &w.RolledOutAt
	}
	return row
}

// printImages writes the table, followed by all problems in full. Wide has whole images.
func printImages(to io.Writer, rows []imageRow, now time.Time, wide bool) error {
	if len(rows) == 0 {
		return say(to, "no workload has an annotation image.lockstep.dev/CONTAINER")
	}
	short := images.Short
	if wide {
		short = func(image string) string { return image }
	}
	table := commandline.NewColumns(to, 3)
	table.Row("NAMESPACE", "WORKLOAD", "CONTAINER", "SPEC", "CURRENT", "LATEST", "SINCE", "NEXT", "STATE")
	for _, r := range rows {
		since := "-"
		if r.Since != nil {
			since = duration.HumanDuration(now.Sub(*r.Since))
		}
		next := "-"
		if r.NextCheck != nil {
			next = duration.HumanDuration(max(0, r.NextCheck.Sub(now)))
		}
		latest := "-"
		if r.Latest != "" {
			latest = short(r.Latest)
		}
		table.Row(r.Namespace, r.Workload, r.Container, r.Spec, short(r.Current), latest, since, next, r.State)
	}
	err := table.End()
	for _, r := range rows {
		if r.Problem != "" {
			err = errors.Join(err, say(to, "%s, container %s: %s", objectname.In(r.Workload, r.Namespace), r.Container, r.Problem))
		}
	}
	return err
}
