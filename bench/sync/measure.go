package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// bench holds the state that the measurements share.
type bench struct {
	dir, agent string
	cluster    *labtest.Cluster
	client     *http.Client
}

func newBench(ctx context.Context, dir string, cluster *labtest.Cluster) (*bench, error) {
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	agent, err := build(ctx, dir)
	return &bench{dir: dir, agent: agent, cluster: cluster, client: client}, err
}

// apply writes a ConfigMap with one key.
func (b *bench) apply(ctx context.Context, name, value string) error {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]string{name: value},
		"metadata": map[string]any{"name": name, "labels": map[string]string{"bench": "yes"}},
	})
	if err != nil {
		return err
	}
	url := b.cluster.Server() + "/api/v1/namespaces/default/configmaps/" + name + "?fieldManager=bench&force=true"
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/apply-patch+yaml")
	answer, err := b.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode > 299 {
		return fmt.Errorf("apply %s: %s", name, answer.Status)
	}
	return err
}

// start runs the agent on a fresh root.
func (b *bench) start(ctx context.Context, args ...string) (*exec.Cmd, string, error) {
	root, err := os.MkdirTemp(b.dir, "root-")
	if err != nil {
		return nil, "", err
	}
	command := exec.CommandContext(ctx, b.agent, append([]string{"--root=" + root, "--quiet=0", "--kubeconfig=" + b.cluster.Kubeconfig(), "--namespace=default"}, args...)...)
	command.Stderr = io.Discard
	return command, root, command.Start()
}

func stop(command *exec.Cmd) {
	_ = command.Process.Signal(os.Interrupt)
	_ = command.Wait() // its exit code isn't measured
}

func (b *bench) size(_ context.Context, r *Result) error {
	info, err := os.Stat(b.agent)
	if err != nil {
		return err
	}
	r.BinaryMB = float64(info.Size()) / 1e6
	return nil
}

const updates = 500

func (b *bench) latency(ctx context.Context, r *Result) error {
	if err := b.apply(ctx, "app", "0"); err != nil {
		return err
	}
	command, root, err := b.start(ctx, "--configmap=app")
	if err != nil {
		return err
	}
	defer stop(command)
	file := filepath.Join(root, "app")
	if err := await(ctx, file, "0"); err != nil {
		return err
	}
	var series, writes []time.Duration
	for i := 1; i <= updates; i++ {
		value := strconv.Itoa(i)
		seen := make(chan time.Time, 1)
		go func() {
			if await(ctx, file, value) == nil {
				seen <- time.Now()
			}
			close(seen)
		}()
		begin := time.Now()
		if err := b.apply(ctx, "app", value); err != nil {
			return err
		}
		writes = append(writes, time.Since(begin))
		series = append(series, (<-seen).Sub(begin))
	}
	r.LatencyMs, r.WriteMs = percentiles(series), percentiles(writes)
	return nil
}

// await polls the file until it holds the value.
func await(ctx context.Context, file, value string) error {
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		raw, err := os.ReadFile(file)
		if err == nil && string(raw) == value {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(100 * time.Microsecond)
	}
	return fmt.Errorf("%s does not become %q", file, value)
}

func percentiles(series []time.Duration) Percentiles {
	slices.Sort(series)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return Percentiles{
		Count: len(series), P50: ms(series[len(series)/2]), P99: ms(series[len(series)*99/100]), Max: ms(series[len(series)-1]),
	}
}

// prepare creates the ConfigMap that the latency measurement otherwise leaves behind.
func (b *bench) prepare(ctx context.Context, _ *Result) error {
	return b.apply(ctx, "app", strconv.Itoa(updates))
}

// two measures a pair of agents as in Grafana's pod. Program pages that both use count
// twice, so the pod's real usage is lower.
func (b *bench) two(ctx context.Context, r *Result) error {
	var commands []*exec.Cmd
	for range 2 {
		command, root, err := b.start(ctx, "--configmap=app", "--layout=files", "--health-addr=127.0.0.1:0")
		if err != nil {
			return err
		}
		defer stop(command)
		if err := await(ctx, filepath.Join(root, "app"), strconv.Itoa(updates)); err != nil {
			return err
		}
		commands = append(commands, command)
	}
	time.Sleep(30 * time.Second) // settled
	for _, command := range commands {
		rss, err := memory(command.Process.Pid, "VmRSS")
		if err != nil {
			return err
		}
		r.TwoIdleRSSMiB += rss
	}
	return nil
}

func (b *bench) idle(ctx context.Context, r *Result) error {
	begun := time.Now()
	command, root, err := b.start(ctx, "--configmap=app", "--health-addr=127.0.0.1:0")
	if err != nil {
		return err
	}
	defer stop(command)
	if err := await(ctx, filepath.Join(root, "app"), strconv.Itoa(updates)); err != nil {
		return err
	}
	time.Sleep(time.Until(begun.Add(3 * time.Second)))
	if r.StartedRSSMiB, err = memory(command.Process.Pid, "VmRSS"); err != nil {
		return err
	}
	time.Sleep(30 * time.Second) // settled
	before, err := cpu(command.Process.Pid)
	if err != nil {
		return err
	}
	r.IdleSeconds = 30
	time.Sleep(30 * time.Second)
	after, err := cpu(command.Process.Pid)
	if err != nil {
		return err
	}
	r.IdleCPUms = float64((after - before).Milliseconds())
	r.IdleRSSMiB, err = memory(command.Process.Pid, "VmRSS")
	return err
}

const (
	sources    = 300
	sourceSize = 50_000
)

func (b *bench) loaded(ctx context.Context, r *Result) error {
	value := strings.Repeat("0123456789abcdef", sourceSize/16)
	for i := range sources {
		if err := b.apply(ctx, fmt.Sprintf("big-%d", i), value+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	command, root, err := b.start(ctx, "--selector=bench=yes")
	if err != nil {
		return err
	}
	defer stop(command)
	last := sources - 1
	if err := await(ctx, filepath.Join(root, fmt.Sprintf("big-%d", last)), value+strconv.Itoa(last)); err != nil {
		return err
	}
	log.Print("loaded; waiting a minute")
	time.Sleep(time.Minute)
	if r.LoadedPeakMiB, err = memory(command.Process.Pid, "VmHWM"); err != nil {
		return err
	}
	r.LoadedRSSMiB, err = memory(command.Process.Pid, "VmRSS")
	return err
}

// mounted compares both programs on a directory with the kubelet's layout.
func (b *bench) mounted(ctx context.Context, r *Result) error {
	other, err := buildPredecessor(ctx, b.dir)
	if err != nil {
		return err
	}
	for _, program := range []struct{ name, path, argument string }{{"configmap-reload v0.12.0", other, ""}, {ours, b.agent, "configmap-reload"}} {
		m, err := b.measureMounted(ctx, program.path, program.argument)
		if err != nil {
			return err
		}
		m.Program = program.name
		r.Mounted = append(r.Mounted, m)
	}
	return nil
}

// buildPredecessor builds configmap-reload in its own module. It doesn't query the checksum
// database, which does not know this version everywhere.
func buildPredecessor(ctx context.Context, dir string) (string, error) {
	module := filepath.Join(dir, "predecessor")
	if err := os.Mkdir(module, 0o755); err != nil {
		return "", err
	}
	text := "module predecessor\n\ngo 1.26.0\n\nrequire github.com/jimmidyson/configmap-reload v0.12.0\n"
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte(text), 0o644); err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-ldflags", "-s -w", "-o", "configmap-reload", "github.com/jimmidyson/configmap-reload")
	command.Dir = module
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GONOSUMDB=github.com/jimmidyson/configmap-reload")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build configmap-reload: %w\n%s", err, output)
	}
	return filepath.Join(module, "configmap-reload"), nil
}

func (b *bench) measureMounted(ctx context.Context, path, argument string) (Mounted, error) {
	called := make(chan time.Time, 100)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Mounted{}, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called <- time.Now() }), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	dir, err := os.MkdirTemp(b.dir, "mounted-")
	if err != nil {
		return Mounted{}, err
	}
	if err := swap(dir, 0); err != nil {
		return Mounted{}, err
	}
	args := []string{"--volume-dir=" + dir, "--webhook-url=http://" + listener.Addr().String() + "/reload", "--web.listen-address=127.0.0.1:0"}
	if argument != "" {
		args = append([]string{argument}, args...)
	}
	command := exec.CommandContext(ctx, path, args...)
	if err := command.Start(); err != nil {
		return Mounted{}, err
	}
	defer stop(command)
	time.Sleep(2 * time.Second) // both need a moment until they watch
	var series []time.Duration
	for i := 1; i <= 50; i++ {
		begin := time.Now()
		if err := swap(dir, i); err != nil {
			return Mounted{}, err
		}
		select {
		case at := <-called:
			series = append(series, at.Sub(begin))
		case <-time.After(30 * time.Second):
			return Mounted{}, fmt.Errorf("%s did not call", path)
		}
		drain(called)
	}
	info, err := os.Stat(path)
	if err != nil {
		return Mounted{}, err
	}
	time.Sleep(30 * time.Second) // settled, as for the agent's other figures
	rss, err := memory(command.Process.Pid, "VmRSS")
	return Mounted{BinaryMB: float64(info.Size()) / 1e6, RSSMiB: rss, LatencyMs: percentiles(series)}, err
}

// drain discards calls that one swap caused twice.
func drain(called <-chan time.Time) {
	for {
		select {
		case <-called:
		case <-time.After(300 * time.Millisecond):
			return
		}
	}
}

// swap replaces the content of a directory as the kubelet does.
func swap(dir string, n int) error {
	generation := fmt.Sprintf("..gen%d", n)
	if err := os.Mkdir(filepath.Join(dir, generation), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, generation, "a"), []byte(strconv.Itoa(n)), 0o644); err != nil {
		return err
	}
	if err := os.Symlink(generation, filepath.Join(dir, "..data_tmp")); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil || n > 0 {
		return err
	}
	return os.Symlink("..data/a", filepath.Join(dir, "a"))
}

// memory reads one field of /proc/PID/status in MiB.
func memory(pid int, field string) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("no %s of process %d", field, pid)
}

// cpu is the CPU time that a process has used.
func cpu(pid int) (time.Duration, error) {
	total := time.Duration(0)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	for _, task := range tasks {
		raw, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(raw))[0], 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(ns)
	}
	return total, nil
}
