package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

const (
	// deployment is the application.
	deployment = "web"
	// moment is the pause for the reader between two events.
	moment = time.Second
	// quietWindow is the quiet window of the story: short, because the reader waits for it.
	// The product's default is 5 s.
	quietWindow = 2 * time.Second
	// patience bounds every wait for an expected event.
	patience = 3 * time.Minute
)

// site is where the story is played: a control plane of its own, or the reader's cluster.
type site interface {
	// open prepares the site, and sets its addresses in the stage. When it fails, close removes
	// what it has created.
	open(ctx context.Context, st *stage) error
	// canaries sets up what a canary needs, and returns Helm. It returns a [missingError] when
	// that is not possible.
	canaries(ctx context.Context, st *stage) (helm string, err error)
	// farewell describes how to continue with the kept objects, and how to remove them.
	farewell(st *stage) []string
	// close removes what open has created; with keep, only what is of no further use.
	close(st *stage, keep bool) error
}

// missingError explains why a chapter is left out.
type missingError struct{ error }

// stage is a site, and Lockstep on it.
type stage struct {
	printer *printer
	site    site
	keep    bool
	binary  string
	// quiet is the quiet window of the running Lockstep, or of the next one, and gather the one
	// for chapters in which two changes make one rollout.
	quiet, gather time.Duration
	unread        bool

	ground

	lockstep *process.Process
	log      *narrator
	// flags are additional flags of the next Lockstep.
	flags []string
	// registry and helmPath are set from the chapter on that needs them.
	registry *registrylab.Server
	helmPath string
}

// ground is what the site provides for the story.
type ground struct {
	kubeconfig   string // as the environment variable has it: one file or more
	client       client.WithWatch
	namespace    string // of the application
	ownNamespace string // of Lockstep's own objects
	dir          string // for files of the story
	scope        []string
	// templates are watched where there is no Deployment controller.
	templates *templates
	// gated pods are never scheduled.
	gated bool
}

// openStage finds the site, builds Lockstep and opens the site. The caller has to close the
// stage, even with an error.
func openStage(ctx context.Context, p *printer, o options) (*stage, error) {
	st := &stage{printer: p, keep: o.keep, binary: o.binary, quiet: quietWindow, gather: o.gather, unread: o.unread}
	var err error
	if o.cluster {
		st.site, err = chooseCluster(ctx, p, o)
	} else {
		st.site, err = chooseOwnPlane(ctx, o)
	}
	if err == nil && st.binary == "" {
		st.binary, err = buildLockstep(ctx)
	}
	if err != nil {
		return nil, err
	}
	err = st.site.open(ctx, st)
	st.keep = st.keep && err == nil
	return st, err
}

// close ends everything that was started. With keep it leaves the site, unless the reader
// interrupted the story, and describes how to continue.
func (st *stage) close(ctx context.Context) (goOn []string, err error) {
	err = errors.Join(st.stopLockstep(), st.closeRegistry())
	keep := st.keep && ctx.Err() == nil
	if keep {
		goOn = st.site.farewell(st)
	}
	return goOn, errors.Join(err, st.site.close(st, keep))
}

// create creates the objects of a manifest: YAML documents.
func (st *stage) create(ctx context.Context, manifests ...string) error {
	for _, manifest := range manifests {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		o.SetNamespace(st.namespace)
		if err := st.client.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// patch changes an object of the application by a JSON merge patch.
func (st *stage) patch(ctx context.Context, o client.Object, name, change string) error {
	o.SetNamespace(st.namespace)
	o.SetName(name)
	return st.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(change)))
}
