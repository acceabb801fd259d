package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

const (
	// namespace contains all workloads and sources.
	namespace = "bench"
	// ownNamespace contains Lockstep's own objects.
	ownNamespace = "lockstep-system"
	// account is the program's user.
	account = "program"
)

// auditPolicy makes the API server log each request of the program, and no others. This was
// chosen over a counting proxy: it works with any kind of credentials and over HTTP/2, it
// records the verb that the API server saw (a proxy must distinguish a list from a watch by
// the query), it doesn't cost the program anything, and 700 MB of lists do not pass through
// a third process on two cores.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["system:serviceaccount:` + namespace + `:` + account + `"]
- level: None
`

// plane is a control plane with a user for the program.
type plane struct {
	cluster *labtest.Cluster
	// load is the load generator's client: no throttle, protobuf.
	load       kubernetes.Interface
	dir        string
	kubeconfig string
	token      string
	// webhook is the address at which the program takes notifications, and registry a registry
	// of this process that misbehaves.
	webhook  string
	registry *endlessRegistry
}

func startPlane(ctx context.Context, o options, s scenario) (*plane, error) {
	dir, err := os.MkdirTemp("", "bench-plane-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the control plane: %w", err)
	}
	p := &plane{dir: dir}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	flags := []string{"--audit-policy-file=" + policy, "--audit-log-path=" + p.auditLog()}
	if !o.streams {
		flags = append(flags, "--feature-gates=WatchList=false")
	}
	var with []labtest.Component
	if s.steps {
		with = append(with, labtest.KWOK)
	}
	p.cluster, err = labtest.Start(ctx, labtest.Options{Kubernetes: o.kubernetes, With: with, Progress: os.Stderr, APIServerFlags: flags})
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	if err := p.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the control plane: %w", err), p.stop())
	}
	return p, nil
}

func (p *plane) auditLog() string   { return filepath.Join(p.dir, "audit.log") }
func (p *plane) programLog() string { return filepath.Join(p.dir, "program.log") }

// stop ends the control plane and removes its files.
func (p *plane) stop() error {
	var err error
	if p.cluster != nil {
		err = p.cluster.Stop()
	}
	if p.registry != nil {
		err = errors.Join(err, p.registry.Close())
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

func (p *plane) prepare(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", p.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	if p.load, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	for _, name := range []string{namespace, ownNamespace} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := p.load.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if err := p.makeAccount(ctx); err != nil {
		return err
	}
	if err := p.writeKubeconfig(config); err != nil {
		return err
	}
	return p.openOutside(ctx)
}

// openOutside prepares the registry, and the address and the secret of notifications.
func (p *plane) openOutside(ctx context.Context) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	p.webhook = net.JoinHostPort("127.0.0.1", port)
	if p.registry, err = startEndlessRegistry(ctx); err != nil {
		return err
	}
	return os.WriteFile(p.secret(), []byte(webhookSecret), 0o600)
}

func (p *plane) secret() string { return filepath.Join(p.dir, "webhook-secret") }

func (p *plane) makeAccount(ctx context.Context) error {
	user := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
	accounts := p.load.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(ctx, user, metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}
	if _, err := p.load.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{}
	answer, err := accounts.CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	p.token = answer.Status.Token
	return nil
}

func (p *plane) writeKubeconfig(config *rest.Config) error {
	if err := os.WriteFile(p.ca(), config.CAData, 0o600); err != nil {
		return err
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["bench"] = &clientcmdapi.Cluster{Server: p.cluster.Server(), CertificateAuthorityData: config.CAData}
	c.AuthInfos["bench"] = &clientcmdapi.AuthInfo{Token: p.token}
	c.Contexts["bench"] = &clientcmdapi.Context{Cluster: "bench", AuthInfo: "bench", Namespace: namespace}
	c.CurrentContext = "bench"
	p.kubeconfig = filepath.Join(p.dir, "kubeconfig")
	return clientcmd.WriteToFile(*c, p.kubeconfig)
}

func (p *plane) ca() string { return filepath.Join(p.dir, "ca.crt") }

// fill replaces the placeholders in the program's command line.
func (p *plane) fill(ctx context.Context, line, flags string) (string, error) {
	port, err := freePort(ctx)
	if err != nil {
		return "", err
	}
	line = strings.NewReplacer(
		"{kubeconfig}", p.kubeconfig, "{server}", p.cluster.Server(), "{token}", p.token,
		"{ca}", p.ca(), "{namespace}", namespace, "{port}", port, "{flags}", flags,
	).Replace(line)
	return p.places().Replace(line), nil
}

// places replaces the placeholders of the flags and annotations of a scenario.
func (p *plane) places() *strings.Replacer {
	return strings.NewReplacer("{registry}", p.registry.address, "{webhook}", p.webhook, "{secret}", p.secret())
}

func freePort(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), nil
}
