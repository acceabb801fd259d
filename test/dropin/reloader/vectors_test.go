package reloader_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// vector is a source, a workload that follows it, and the variable that shows it.
type vector struct {
	source client.Object
	app    app
	want   string
}

// vectors: contents and the variables that the original makes of them.
func vectors(t *testing.T, r *room, _ *program) {
	t.Helper()
	configMap := func(name string, data map[string]string, binary map[string][]byte) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data, BinaryData: binary}
	}
	secret := func(name string, data map[string]string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}
	}
	named := func(name string) app {
		return app{notes: notes(configMapReload, name, secretReload, name), pod: uses()}
	}
	two := []corev1.Container{container("web"), container("log")}
	cases := map[string]vector{
		"Text":    {configMap("app-config", map[string]string{"LOG_LEVEL": "info"}, nil), named("app-config"), "web[0] STAKATER_APP_CONFIG_CONFIGMAP=b562efabccd7294ac948a0f73739b543e0c829f9"},
		"Pair":    {configMap("pair", map[string]string{"b": "2", "a": "1"}, nil), named("pair"), "web[0] STAKATER_PAIR_CONFIGMAP=f83e99e324ba68ccc373a58ef1eb42f8ab88646a"},
		"Order":   {configMap("order", map[string]string{"app": "x", "app-extra": "y", "app1": "z", "app_b": "w", "App": "q"}, nil), named("order"), "web[0] STAKATER_ORDER_CONFIGMAP=f80a0a00768b0027758a9e95ccac0f5e739c3211"},
		"Binary":  {configMap("mixed", map[string]string{"k": "v"}, map[string][]byte{"blob": {0x00, 0xff, 0x10}}), named("mixed"), "web[0] STAKATER_MIXED_CONFIGMAP=bc206bf9fee16e1de1d93ec93df0e1d67c7e3c5e"},
		"Empty":   {configMap("empty", nil, nil), named("empty"), "web[0] STAKATER_EMPTY_CONFIGMAP=da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		"Secret":  {secret("db.credentials", map[string]string{"username": "admin", "password": "s3cr3t"}), named("db.credentials"), "web[0] STAKATER_DB_CREDENTIALS_SECRET=c6cceb2f1c84498af4f4cda76071f8bc2afd425b"},
		"Bytes":   {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "raw"}, Data: map[string][]byte{"k": {0xff, 0x00, 0xfe}}}, named("raw"), "web[0] STAKATER_RAW_SECRET=deb8c1465925a6d4b569bf5c450b56baf092df3a"},
		"OddName": {configMap("my--odd.name-v1.2", map[string]string{"a": "1"}, nil), named("my--odd.name-v1.2"), "web[0] STAKATER_MY_ODD_NAME_V1_2_CONFIGMAP=86eda770a6060824b090dd4df091e3bd4121279c"},
		"UTF8":    {configMap("motd", map[string]string{"motd": "héllo\n"}, nil), named("motd"), "web[0] STAKATER_MOTD_CONFIGMAP=a84b8633ccc1d93e579ac284f06d910da63f20fe"},
		"Init": {
			secret("db", map[string]string{"DB_PASS": "hunter2"}),
			app{notes: notes(auto, "true"), pod: corev1.PodSpec{InitContainers: []corev1.Container{container("migrate", "secret/db")}, Containers: two}},
			"web[0] STAKATER_DB_SECRET=e6d4b1ac8b57a6126a7e774e4498c6d0cd434379",
		},
		"Shared": {
			configMap("shared.cfg", map[string]string{"k": "v", "empty": ""}, nil),
			app{notes: notes(auto, "true"), pod: corev1.PodSpec{
				Volumes:    []corev1.Volume{volume("v", "projected-configmap", "shared.cfg")},
				Containers: []corev1.Container{container("web", "configmap/shared.cfg"), mounts(container("sidecar"), "v")},
			}},
			"sidecar[0] STAKATER_SHARED_CFG_CONFIGMAP=b89f725a5a73619c486a5ba808ad6338c10f248a",
		},
		"Listed": {
			secret("tls-2024", map[string]string{"tls.key": "K", "tls.crt": "C", "ca.crt": "A"}),
			app{notes: notes(auto, "false", secretReload, "db-.*, tls-2024"), pod: corev1.PodSpec{Containers: two}},
			"web[0] STAKATER_TLS_2024_SECRET=79d93cd4b059088925948a349f2b63c8bd2860e7",
		},
	}
	workloads := map[string]*unstructured.Unstructured{}
	for name, v := range cases {
		v.app.name = strings.ToLower(name)
		workloads[name] = r.add(t, v.app)
		if _, ok := v.source.(*corev1.Secret); ok {
			r.secret(t, v.source.GetName(), "before")
		} else {
			r.configMap(t, v.source.GetName(), "before")
		}
	}
	for _, v := range cases {
		v.source.SetNamespace(r.name)
		if err := r.client.Update(t.Context(), v.source); err != nil {
			t.Fatal(err)
		}
	}
	for name, v := range cases {
		r.awaitReloads(t, workloads[name], 1, v.want)
	}
}
