package helmtest

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Everything sets each value of charts/lockstep that is not a capability to something else
// than its default.
const Everything = `
image: {repository: registry.example/team/lockstep, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
labels: {team: platform, app.kubernetes.io/name: other}
replicas: 3
reload: {auto: true}
revisions: {enabled: true, grace: 20m}
rollouts: {ramp: false, maxRolling: 5, stopAfter: 0, settle: 20s, timeout: 30m, pauseGrace: 1h, shared: [configmap/ca-bundle, secret/root], window: 0 2 * * 1-5 2h Europe/Berlin, damping: 1m, maxDamping: 1h}
images: {enabled: true, interval: 5m, dockerConfigNamespaces: [shop], cloudIdentityNamespaces: [shop, blog], webhook: {enabled: true, port: 9000, secretName: webhook, secretKey: senders}}
kinds: [{kind: example.com/v1/Worker=spec.template, resource: workers}, {kind: example.com/v1/Ring=spec.in-rack.pod_template, resource: rings}]
quiet: 10s
maxDelay: 2m
notifications: {secretName: receivers, secretKey: all.yaml}
logging: {level: debug, format: text}
extraArgs: [--workers=4, --cloud-identity=false, --docker-config=/etc/docker/config.json]
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy.example:3128"}]
extraVolumes: [{name: docker, secret: {secretName: docker}}]
extraVolumeMounts: [{name: docker, mountPath: /etc/docker}]
serviceAccount: {name: account, annotations: {example.com/role: reader}}
admissionPolicy: {enabled: true, deniedNamespaces: [kube-system, "1"]}
podAnnotations: {example.com/note: "1"}
podLabels: {team: platform}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{operator: Exists}]
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app.kubernetes.io/name: lockstep}}}]
priorityClassName: system-cluster-critical
podDisruptionBudget: {minAvailable: 50%}
networkPolicy:
  enabled: true
  metricsFrom: [{namespaceSelector: {matchLabels: {team: monitoring}}}]
  webhookFrom: [{ipBlock: {cidr: 10.0.0.0/8}}]
  egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]
podMonitor: {enabled: true, labels: {release: prometheus}, interval: 30s}
prometheusRule: {enabled: true, labels: {release: prometheus}}
dashboard: {enabled: true, annotations: {grafana_folder: Platform}}
`

// Installation renders charts/lockstep for a release, as it is installed on that version of
// Kubernetes. Of several values for one key the last one counts.
func (h *Helm) Installation(t testing.TB, release, namespace, kubernetes string, values ...string) []*unstructured.Unstructured {
	t.Helper()
	args := []string{"template", release, h.Chart("lockstep"), "-n", namespace, "--kube-version", kubernetes}
	for _, v := range values {
		args = append(args, "-f", ValuesFile(t, v))
	}
	return Objects(t, h.Run(t, args...))
}

// Standard leaves out the kinds of the Prometheus operator, which the API server does not know.
func Standard(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return o.GroupVersionKind().Group == "monitoring.coreos.com"
	})
}

// Server is an API server that is shown objects, each once, and stores none of them.
type Server struct {
	client client.Client
	mu     sync.Mutex
	seen   map[string]bool
}

// NewServer returns the server of a client.
func NewServer(c client.Client) *Server {
	return &Server{client: c, seen: map[string]bool{}}
}

// Accepts creates the objects with strict validation, without storing them.
func (s *Server) Accepts(t testing.TB, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if s.again(t, o) {
			continue
		}
		if err := s.client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// again reports whether the server was shown the object before.
func (s *Server) again(t testing.TB, o *unstructured.Unstructured) bool {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	again := s.seen[string(text)]
	s.seen[string(text)] = true
	return again
}
