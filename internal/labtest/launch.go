package labtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/internal/labtest/remains"
)

// pollInterval is short: most of a start is spent waiting for readiness.
const pollInterval = 25 * time.Millisecond

// relaxedGC makes the control plane's programs collect garbage a quarter as often: tests
// create many objects, and memory is cheaper than cores.
const relaxedGC = "GOGC=400"

// spawn starts a program of the control plane.
func (c *Cluster) spawn(name string, args ...string) error {
	built := c.programs[name]
	return c.begin(plain(name), built.Version, process.Spec{Path: built.Path, Args: args})
}

// begin starts a process of the control plane with its log in the directory. It refuses a
// second process of the same name, because only one of them would be ended.
func (c *Cluster) begin(name, version string, spec process.Spec) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.processes[name]; p != nil && p.ID().Alive() {
		return fmt.Errorf("%s runs already, as process %d", name, p.ID().PID)
	}
	log, err := os.OpenFile(c.Log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer log.Close()
	if spec.Env == nil {
		spec.Env = append(os.Environ(), relaxedGC)
	}
	spec.Dir, spec.Env = c.run.Dir, append(spec.Env, remains.Mark(c.run.Dir))
	spec.Stdout, spec.Stderr, spec.Detached = log, log, c.options.Detached
	p, err := process.Start(spec)
	if err != nil {
		return err
	}
	c.processes[name] = p
	return c.run.started(name, version, p.ID())
}

// plain is a program's name without the Kubernetes release it is for.
func plain(name string) string {
	name, _, _ = strings.Cut(name, "@")
	return name
}

// await polls until a program is ready, the program ends, or ctx ends.
func (c *Cluster) await(ctx context.Context, name string, ready func(context.Context) error) error {
	c.mu.Lock()
	p := c.processes[name]
	c.mu.Unlock()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s ended: %w; %s", name, p.Err(), c.logTails(name))
		case <-ctx.Done():
			return c.gaveUp(ctx, name, err)
		case <-time.After(pollInterval):
		}
	}
}

// gaveUp is the error for the end of a wait: detailed when the program was too slow, brief
// when the caller cancelled the wait.
func (c *Cluster) gaveUp(ctx context.Context, name string, last error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("wait for %s: %w", name, context.Cause(ctx))
	}
	return fmt.Errorf("wait for %s: %w (last: %w); %s", name, context.Cause(ctx), last, c.logTails(name))
}

// logTails shows the end of a process's log, and of the logs of programs that it runs
// itself. It reads them now because a failed start removes the directory.
func (c *Cluster) logTails(name string) string {
	names := []string{name}
	if name == nodeProcess {
		names = append(names, "containerd", program.Kubelet)
	}
	var tails []string
	for _, name := range names {
		tails = append(tails, "the end of "+name+".log:\n"+tail(c.Log(name)))
	}
	return strings.Join(tails, "\n")
}

func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

func (c *Cluster) file(name string) string { return filepath.Join(c.run.Dir, name) }

func (c *Cluster) release(name string) string {
	return program.ForKubernetes(name, c.options.kubernetes())
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	clients := "http://127.0.0.1:" + strconv.Itoa(c.etcd)
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	peers := "http://127.0.0.1:" + strconv.Itoa(ports[0])
	err = c.spawn(c.release(program.Etcd),
		"--data-dir="+c.file("etcd"),
		"--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers,
		"--initial-cluster=default="+peers,
		"--quota-backend-bytes="+strconv.Itoa(8<<30), // A benchmark stores 100,000 objects of 20 KB.
		"--unsafe-no-fsync",                          // The data lives no longer than the processes.
	)
	if err != nil {
		return err
	}
	etcd := &api{server: clients, client: c.api.client}
	return c.await(ctx, program.Etcd, func(ctx context.Context) error {
		_, err := etcd.get(ctx, "/health")
		return err
	})
}

// StartAPIServer starts the API server, at the start or after [Cluster.StopAPIServer],
// on the same port and data, and waits until it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	err := c.spawn(c.release(program.APIServer), append([]string{
		"--etcd-servers=http://127.0.0.1:" + strconv.Itoa(c.etcd),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.secure),
		"--tls-cert-file=" + c.file(serverCertFile),
		"--tls-private-key-file=" + c.file(serverKeyFile),
		"--client-ca-file=" + c.file(caFile),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.file(serviceAccountFile),
		"--service-account-signing-key-file=" + c.file(serviceAccountFile),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--endpoint-reconciler-type=none", // This machine has no address to publish.
		"--allow-privileged=true",
		// For logs and exec on a real node, whose kubelet is reachable on this loopback.
		"--kubelet-client-certificate=" + c.file(adminCertFile),
		"--kubelet-client-key=" + c.file(adminKeyFile),
		"--kubelet-preferred-address-types=Hostname",
	}, c.options.APIServerFlags...)...)
	if err != nil {
		return err
	}
	return c.await(ctx, program.APIServer, func(ctx context.Context) error {
		_, err := c.api.get(ctx, "/readyz")
		return err
	})
}

// StopAPIServer ends the API server at once, as a crash would. Its port stays
// free and refuses connections.
func (c *Cluster) StopAPIServer() error {
	p, err := c.apiServer()
	if err != nil {
		return err
	}
	return p.Kill()
}

// FreezeAPIServer suspends the API server but leaves its connections open: requests and
// watches hang instead of failing.
func (c *Cluster) FreezeAPIServer() error {
	p, err := c.apiServer()
	if err != nil {
		return err
	}
	return p.Freeze()
}

// ThawAPIServer resumes a frozen API server.
func (c *Cluster) ThawAPIServer() error {
	p, err := c.apiServer()
	if err != nil {
		return err
	}
	return p.Signal(syscall.SIGCONT)
}

func (c *Cluster) apiServer() (*process.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.processes[program.APIServer]
	if p == nil {
		return nil, errNotOurs
	}
	return p, nil
}

// startControllerManager waits until the controllers have created the service account of the
// default namespace: then they work, and pods can be created.
func (c *Cluster) startControllerManager(ctx context.Context) error {
	err := c.spawn(c.release(program.ControllerManager),
		"--kubeconfig="+c.Kubeconfig(),
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file="+c.file(serviceAccountFile),
		"--root-ca-file="+c.file(caFile),
		"--kube-api-qps=1000", "--kube-api-burst=1000", // The default of 20 a second would pace every test with many rollouts.
	)
	if err != nil {
		return err
	}
	return c.await(ctx, program.ControllerManager, func(ctx context.Context) error {
		return c.hasServiceAccount(ctx, "default")
	})
}

func (c *Cluster) hasServiceAccount(ctx context.Context, namespace string) error {
	_, err := c.api.get(ctx, "/api/v1/namespaces/"+namespace+"/serviceaccounts/default")
	return err
}
