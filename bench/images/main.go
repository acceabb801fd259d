// Command images measures the cost of following images: the requests to a real
// registry with TLS and token authentication, by kind, and the memory of the resolver and
// of the built controller.
//
//	go run ./bench/images -out bench/results/images.json
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/bench/internal/figures"
	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

const (
	images, askers = 20, 100
	manyTags       = 10_000
	manyQuestions  = 5_000
	// polls are counted in the steady state, interval apart.
	polls    = 10
	interval = 3 * time.Second
	quiet    = time.Second
)

// Result is one run. A figure beyond its limit makes the command fail.
type Result struct {
	When string `json:"when"`
	Go   string `json:"go"`
	// FirstPoll are the requests until every question has its first answer.
	FirstPoll map[string]int `json:"firstPoll"`
	// SteadyPolls are the requests of Polls polls after that.
	SteadyPolls map[string]int `json:"steadyPolls"`
	Polls       int            `json:"polls"`
	// TagsFirst and TagsSteady are the requests for a repository of 10,000 tags: the first list,
	// and Polls lists later, for a spec without a prefix. TagsPrefix is one list with a prefix.
	TagsFirst  map[string]int `json:"tagsFirst"`
	TagsSteady map[string]int `json:"tagsSteady"`
	TagsPrefix map[string]int `json:"tagsPrefix"`
	// QuestionBytes is the heap for one of 5,000 questions that are watched and answered.
	QuestionBytes int `json:"questionBytes"`
	// ControllerPolls are the requests of the built controller in the steady state, within so
	// many seconds: 100 Deployments follow 20 images.
	ControllerPolls   map[string]int `json:"controllerPolls"`
	ControllerSeconds float64        `json:"controllerSeconds"`
	// FirstPeakMiB is the controller's peak memory when it pins 5,000 Deployments for the first
	// time, all at once; PeakMiB that of a controller that starts with pinned ones.
	FirstPeakMiB int `json:"firstPeakMiB"`
	PeakMiB      int `json:"peakMiB"`
	// NotifiedMedianMs and NotifiedMostMs are the time from before a push to the patch, without
	// the quiet window, when the registry sends a notification.
	NotifiedMedianMs int `json:"notifiedMedianMs"`
	NotifiedMostMs   int `json:"notifiedMostMs"`
}

func main() { figures.Main(run) }

func run(ctx context.Context, out string) (err error) {
	dir, err := os.MkdirTemp("", "lockstep-bench-images-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := registrylab.Start(ctx, registrylab.Options{Dir: dir, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	result := Result{When: time.Now().UTC().Format(time.RFC3339), Go: runtime.Version(), Polls: polls}
	for _, step := range []func(context.Context, *registrylab.Server, *Result) error{measurePolls, measureTags, measureMemory, measureNotification, measureController} {
		if err := step(ctx, server, &result); err != nil {
			return err
		}
	}
	if err := figures.Write(result, out); err != nil {
		return err
	}
	return result.check()
}

// check compares the figures with their limits.
func (r Result) check() error {
	var limits figures.Limits
	limits.Most("digests asked for per poll", r.SteadyPolls["head"], images*r.Polls)
	limits.Most("manifests read in the steady state", r.SteadyPolls["manifest"]+r.SteadyPolls["blob"], 0)
	limits.Most("pings after the first", r.SteadyPolls["ping"], 0)
	limits.Most("tokens in the steady state", r.SteadyPolls["token"], 1)
	limits.Most("lists at first", r.TagsFirst["tags"], manyTags/1000+1)
	limits.Most("lists per poll", r.TagsSteady["tags"], r.Polls*(manyTags/1000+1))
	limits.Most("lists with a prefix", r.TagsPrefix["tags"], 1)
	limits.Most("digests that the controller asks for", r.ControllerPolls["head"], images*(polls+1))
	limits.Most("manifests that the controller reads in the steady state", r.ControllerPolls["manifest"]+r.ControllerPolls["blob"], 0)
	limits.Most("ms from a push to the patch, beyond the quiet window", r.NotifiedMostMs, 1000)
	limits.Most("MiB of the controller with 5,000 workloads", r.PeakMiB, 150)
	limits.Most("MiB of the controller that pins 5,000 workloads", r.FirstPeakMiB, 150)
	return limits.Err()
}

// owner provides the credential, as many Secrets would.
type owner struct{}

// Credentials of the registry's user.
func (owner) Credentials(context.Context, tagspec.Repository) ([]keychain.Credential, error) {
	return []keychain.Credential{{Username: registrylab.User, Password: registrylab.Password}}, nil
}

// resolver returns one whose interval has no jitter, so polls can be counted.
func resolver(server *registrylab.Server, every time.Duration) *imagewatch.Resolver {
	return imagewatch.New(imagewatch.Options{
		Interval: every, Jitter: func(d time.Duration) time.Duration { return d },
		Registries: registry.Options{Hosts: map[string]registry.Host{server.Address: {CA: server.CA}}},
	})
}

func question(server *registrylab.Server, asker int, image string, args ...any) (imagewatch.Question, error) {
	parsed, err := tagspec.ParseImage(server.Address + "/" + fmt.Sprintf(image, args...))
	return imagewatch.Question{
		Repository: parsed.Repository, Spec: parsed.Spec, Platforms: registrylab.Platforms(),
		Asker: fmt.Sprint("namespace-", asker), Credentials: owner{},
	}, err
}

// watch registers questions and returns when all have an answer. The returned function ends
// the watches.
func watch(ctx context.Context, r *imagewatch.Resolver, questions []imagewatch.Question) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var (
		running  sync.WaitGroup
		answered sync.WaitGroup
		watches  []*imagewatch.Watch
	)
	for _, q := range questions {
		answered.Add(1)
		watches = append(watches, r.Watch(q, sync.OnceFunc(answered.Done)))
	}
	running.Go(func() { r.Run(ctx) })
	all := make(chan struct{})
	go func() {
		answered.Wait()
		close(all)
	}()
	end = func() {
		cancel()
		running.Wait()
	}
	select {
	case <-all:
	case <-ctx.Done():
		return end, context.Cause(ctx)
	}
	for _, w := range watches {
		err = errors.Join(err, w.View().Err)
	}
	return end, err
}

// steady counts the requests of some polls, starting and ending half-way between two polls.
func steady(ctx context.Context, server *registrylab.Server) (map[string]int, error) {
	if err := wait(ctx, interval/2); err != nil {
		return nil, err
	}
	server.Counts()
	err := wait(ctx, polls*interval)
	return server.Counts(), err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// measurePolls uses twenty images for two platforms, with a hundred questions.
func measurePolls(ctx context.Context, server *registrylab.Server, result *Result) error {
	var questions []imagewatch.Question
	for i := range askers {
		if i < images {
			if _, err := server.PushIndex(ctx, fmt.Sprintf("app-%d", i), "1", fmt.Sprint(i)); err != nil {
				return err
			}
		}
		q, err := question(server, i, "app-%d:1", i%images)
		if err != nil {
			return err
		}
		questions = append(questions, q)
	}
	server.Counts()
	end, err := watch(ctx, resolver(server, interval), questions)
	defer end()
	if err != nil {
		return err
	}
	result.FirstPoll = server.Counts()
	result.SteadyPolls, err = steady(ctx, server)
	return err
}

// measureTags uses a repository of ten thousand tags.
func measureTags(ctx context.Context, server *registrylab.Server, result *Result) error {
	digest, err := server.PushIndex(ctx, "big", "latest", "big")
	if err != nil {
		return err
	}
	var tags []string
	for i := range manyTags - 1 {
		tags = append(tags, fmt.Sprintf("v1.%d.%d", i/10, i%10))
	}
	if err := server.Tag("big", digest, tags...); err != nil {
		return err
	}
	var questions []imagewatch.Question
	for i := range askers {
		q, err := question(server, i, "big:^1")
		if err != nil {
			return err
		}
		questions = append(questions, q)
	}
	server.Counts()
	r := resolver(server, interval)
	end, err := watch(ctx, r, questions)
	if err != nil {
		end()
		return err
	}
	result.TagsFirst = server.Counts()
	result.TagsSteady, err = steady(ctx, server)
	end()
	if err != nil {
		return err
	}
	prefixed, err := question(server, 0, "big:v1.998.*")
	if err != nil {
		return err
	}
	if err := wait(ctx, interval); err != nil { // until the list is too old
		return err
	}
	server.Counts()
	_, err = r.Resolve(ctx, prefixed)
	result.TagsPrefix = server.Counts()
	return err
}

// measureMemory watches five thousand tags of one image.
func measureMemory(ctx context.Context, server *registrylab.Server, result *Result) error {
	digest, err := server.PushIndex(ctx, "many", "latest", "many")
	if err != nil {
		return err
	}
	var tags []string
	for i := range manyQuestions {
		tags = append(tags, fmt.Sprintf("t%d", i))
	}
	if err := server.Tag("many", digest, tags...); err != nil {
		return err
	}
	before := heap()
	var questions []imagewatch.Question
	for i, tag := range tags {
		q, err := question(server, i, "many:%s", tag)
		if err != nil {
			return err
		}
		questions = append(questions, q)
	}
	r := resolver(server, time.Hour)
	end, err := watch(ctx, r, questions)
	defer end()
	result.QuestionBytes = (heap() - before) / manyQuestions
	runtime.KeepAlive(questions)
	return err
}

// heap is the heap in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
