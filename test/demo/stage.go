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
	// moment is what the reader gets between two things that happen.
	moment = time.Second
	// quietWindow is the quiet window of the story: short, because the reader waits for it.
	// The product's default is 5 s.
	quietWindow = 2 * time.Second
	// patience bounds every wait for something that must happen.
	patience = 3 * time.Minute
)

// site is where the story is played: a control plane of its own, or the reader's cluster.
type site interface {
	// open makes the site ready, and tells the stage where things are. What it has
	// made when it fails is left to close.
	open(ctx context.Context, st *stage) error
	// canaries sees to what a canary needs, and returns Helm. It returns a [missingError]
	// when that cannot be had.
	canaries(ctx context.Context, st *stage) (helm string, err error)
	// farewell says how to go on with what is kept, and how to remove it.
	farewell(st *stage) []string
	// close takes away what open has made; with keep, only what serves nobody.
	close(st *stage, keep bool) error
}

// missingError says why a chapter is left out.
type missingError struct{ error }

// stage is a site, and Lockstep on it.
type stage struct {
	printer *printer
	site    site
	keep    bool
	binary  string
	// quiet is the quiet window of the Lockstep that runs, or of the next one, and gather the
	// one for chapters in which two changes make one rollout.
	quiet, gather time.Duration
	unread        bool

	ground

	lockstep *process.Process
	log      *narrator
	// flags are further ones of the next Lockstep.
	flags []string
	// registry and helmPath are there from the chapter on that needs them.
	registry *registrylab.Server
	helmPath string
}

// ground is what the site offers to the story.
type ground struct {
	kubeconfig   string // as the environment variable has it: one file or more
	client       client.Client
	namespace    string // of the application
	ownNamespace string // where Lockstep keeps what it remembers
	dir          string // for files of the story
	scope        []string
	// templates are watched where there is no Deployment controller.
	templates *templates
	// gated pods are never scheduled.
	gated bool
}

// openStage finds the site, builds Lockstep and opens the site. A stage that it returns
// is to be closed, also with an error.
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

// close ends everything that was started. With keep it leaves the site, unless the
// reader interrupted the story, and says how to go on.
func (st *stage) close(ctx context.Context) error {
	err := errors.Join(st.stopLockstep(), st.closeRegistry())
	keep := st.keep && ctx.Err() == nil
	if keep {
		for _, line := range st.site.farewell(st) {
			st.printer.line(line)
		}
	}
	return errors.Join(err, st.site.close(st, keep))
}

// create makes the objects of a manifest: YAML documents.
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
