package stakater_test

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

type (
	texts = map[string]string
	bytes = map[string][]byte
)

// TestVectors has the contract's vectors about what is written, all but those that need a
// choice of the container.
func TestVectors(t *testing.T) {
	t.Parallel()
	shown := func(t stakater.Type, name, hash string) string { return stakater.Variable(t, name) + "=" + hash }
	logLevel := stakater.HashConfigMap(texts{"LOG_LEVEL": "info"}, nil)
	for name, tc := range map[string]struct{ got, want string }{
		"1 a ConfigMap": {
			shown(stakater.ConfigMap, "app-config", logLevel),
			"STAKATER_APP_CONFIG_CONFIGMAP=b562efabccd7294ac948a0f73739b543e0c829f9",
		},
		"2 two entries": {
			shown(stakater.ConfigMap, "pair", stakater.HashConfigMap(texts{"b": "2", "a": "1"}, nil)),
			"STAKATER_PAIR_CONFIGMAP=f83e99e324ba68ccc373a58ef1eb42f8ab88646a",
		},
		"2 one entry that looks like two": {
			shown(stakater.ConfigMap, "pair", stakater.HashConfigMap(texts{"a": "1;b=2"}, nil)),
			"STAKATER_PAIR_CONFIGMAP=f83e99e324ba68ccc373a58ef1eb42f8ab88646a",
		},
		"3 the order of keys": {
			stakater.HashConfigMap(texts{"app": "x", "app-extra": "y", "app1": "z", "app_b": "w", "App": "q"}, nil),
			"f80a0a00768b0027758a9e95ccac0f5e739c3211",
		},
		"4 text and bytes": {
			stakater.HashConfigMap(texts{"k": "v"}, bytes{"blob": {0x00, 0xff, 0x10}}),
			"bc206bf9fee16e1de1d93ec93df0e1d67c7e3c5e",
		},
		"4 text that looks like bytes": {
			stakater.HashConfigMap(texts{"k": "v", "blob": "AP8Q"}, nil),
			"bc206bf9fee16e1de1d93ec93df0e1d67c7e3c5e",
		},
		"5 empty": {
			shown(stakater.ConfigMap, "empty", stakater.HashConfigMap(nil, nil)),
			"STAKATER_EMPTY_CONFIGMAP=da39a3ee5e6b4b0d3255bfef95601890afd80709",
		},
		"6 a Secret": {
			shown(stakater.Secret, "db.credentials", stakater.HashSecret(bytes{"username": []byte("admin"), "password": []byte("s3cr3t")})),
			"STAKATER_DB_CREDENTIALS_SECRET=c6cceb2f1c84498af4f4cda76071f8bc2afd425b",
		},
		"7 raw bytes": {
			shown(stakater.Secret, "raw", stakater.HashSecret(bytes{"k": {0xff, 0x00, 0xfe}})),
			"STAKATER_RAW_SECRET=deb8c1465925a6d4b569bf5c450b56baf092df3a",
		},
		"8 an odd name": {
			shown(stakater.ConfigMap, "my--odd.name-v1.2", stakater.HashConfigMap(texts{"a": "1"}, nil)),
			"STAKATER_MY_ODD_NAME_V1_2_CONFIGMAP=86eda770a6060824b090dd4df091e3bd4121279c",
		},
		"9 UTF-8 and a line break": {
			shown(stakater.ConfigMap, "motd", stakater.HashConfigMap(texts{"motd": "héllo\n"}, nil)),
			"STAKATER_MOTD_CONFIGMAP=a84b8633ccc1d93e579ac284f06d910da63f20fe",
		},
		"10 a SecretProviderClass": {
			shown(stakater.SecretProviderClass, "vault-db", stakater.HashClass("vault-db", []stakater.ClassObject{{ID: "password", Version: "v2"}, {ID: "api-key", Version: "7"}})),
			"STAKATER_VAULT_DB_SECRETPROVIDERCLASS=e31641488c36810fbeb3f024f49199bef0fd5624",
		},
		"11 the annotation": {
			stakater.Reloaded{Type: stakater.ConfigMap, Name: "app-config", Namespace: "prod", Hash: logLevel, Containers: []string{"web"}, ObservedAt: 1700000000}.Text(),
			`{"type":"CONFIGMAP","name":"app-config","namespace":"prod","hash":"b562efabccd7294ac948a0f73739b543e0c829f9","containerRefs":["web"],"observedAt":1700000000}`,
		},
		"12 the annotation of a deletion": {
			stakater.Reloaded{Type: stakater.Secret, Name: "db", Namespace: "prod", Hash: stakater.DeletedHash, Containers: []string{"web"}, ObservedAt: 1700000060}.Text(),
			`{"type":"SECRET","name":"db","namespace":"prod","hash":"aae45badef99284e4dae01d6046154ea9d99532f","containerRefs":["web"],"observedAt":1700000060}`,
		},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %s, want %s", name, tc.got, tc.want)
		}
	}
}

// TestContainerVectors has the contract's vectors with a choice of the container.
func TestContainerVectors(t *testing.T) {
	t.Parallel()
	shared, db := configMap("shared.cfg"), secret("db")
	for name, tc := range map[string]struct {
		annotations annotations
		spec        corev1.PodSpec
		source      stakater.Source
		hash        string
		want        string
	}{
		"13 only an init container refers to it": {
			annotations{auto: "true"},
			corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "migrate", EnvFrom: []corev1.EnvFromSource{allOf(db)}}},
				Containers:     []corev1.Container{{Name: "web"}, {Name: "log"}},
			},
			db, stakater.HashSecret(bytes{"DB_PASS": []byte("hunter2")}),
			"web: STAKATER_DB_SECRET=e6d4b1ac8b57a6126a7e774e4498c6d0cd434379",
		},
		"14 a volume comes first": {
			annotations{auto: "true"},
			corev1.PodSpec{
				Volumes: []corev1.Volume{projected("all", shared)},
				Containers: []corev1.Container{
					{Name: "web", EnvFrom: []corev1.EnvFromSource{allOf(shared)}},
					{Name: "sidecar", VolumeMounts: mounts("all")},
				},
			},
			shared, stakater.HashConfigMap(texts{"k": "v", "empty": ""}, nil),
			"sidecar: STAKATER_SHARED_CFG_CONFIGMAP=b89f725a5a73619c486a5ba808ad6338c10f248a",
		},
		"15 named, without a reference": {
			annotations{auto: "false", secrets: "db-.*, tls-2024"},
			corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}, {Name: "log"}}},
			secret("tls-2024"), stakater.HashSecret(bytes{"tls.key": []byte("K"), "tls.crt": []byte("C"), "ca.crt": []byte("A")}),
			"web: STAKATER_TLS_2024_SECRET=79d93cd4b059088925948a349f2b63c8bd2860e7",
		},
	} {
		in := stakater.Workload{Annotations: tc.annotations, Template: &corev1.PodTemplateSpec{Spec: tc.spec}}
		container, ok := words(false).Match(in, tc.source)
		if !ok {
			t.Errorf("%s: it doesn't reload", name)
			continue
		}
		got := tc.spec.Containers[container].Name + ": " + stakater.Variable(tc.source.Type, tc.source.Name) + "=" + tc.hash
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestHashOrder: entries are ordered as whole texts, even if an ID contains the separator, and
// whatever order the objects come in.
func TestHashOrder(t *testing.T) {
	t.Parallel()
	for hashed, objects := range map[string][]stakater.ClassObject{
		"SecretProviderClassName=c;a=1;a=2":         {{ID: "a", Version: "2"}, {ID: "a", Version: "1"}},
		"SecretProviderClassName=c;a=b;a=b=1;a=c":   {{ID: "a", Version: "c"}, {ID: "a=b", Version: "1"}, {ID: "a", Version: "b"}},
		"A=1;SecretProviderClassName=c;z=2":         {{ID: "z", Version: "2"}, {ID: "A", Version: "1"}},
		"=;SecretProviderClassName=c":               {{}},
		"SecretProviderClassName=c":                 nil,
		"SecretProviderClassName=c;a-b=1;a=1;a_b=1": {{ID: "a", Version: "1"}, {ID: "a_b", Version: "1"}, {ID: "a-b", Version: "1"}},
	} {
		sum := sha1.Sum([]byte(hashed))
		if got, want := stakater.HashClass("c", objects), hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%v: %s, want that of %s", objects, got, hashed)
		}
	}
	sum := sha1.Sum([]byte("__RELOADER_EMPTY_DELETE_MARKER__"))
	if got := hex.EncodeToString(sum[:]); got != stakater.DeletedHash {
		t.Errorf("the hash of a deleted source is %s", got)
	}
}

func TestVariable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"app":      "STAKATER_APP_SECRET",
		"a-b":      "STAKATER_A_B_SECRET",
		"a.b":      "STAKATER_A_B_SECRET",
		"a-.-b":    "STAKATER_A_B_SECRET",
		"1a":       "STAKATER_1A_SECRET",
		"--a":      "STAKATER_A_SECRET",
		"a--":      "STAKATER_A__SECRET",
		"größe_1":  "STAKATER_GR_E_1_SECRET",
		"":         "STAKATER__SECRET",
		"...":      "STAKATER__SECRET",
		"Mixed.Up": "STAKATER_MIXED_UP_SECRET",
	} {
		if got := stakater.Variable(stakater.Secret, name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestParseReloaded(t *testing.T) {
	t.Parallel()
	full := stakater.Reloaded{Type: stakater.SecretProviderClass, Name: "p", Namespace: "n", Hash: "h", Containers: []string{"web"}, ObservedAt: 1}
	for name, tc := range map[string]struct {
		text string
		want stakater.Reloaded
	}{
		"written":          {full.Text(), full},
		"by another order": {`{"observedAt":1,"hash":"h", "name":"p","namespace":"n","containerRefs":["web"],"type":"SECRETPROVIDERCLASS","more":{}}`, full},
		"only the needed":  {`{"type":"SECRET","name":"s","hash":"h"}`, stakater.Reloaded{Type: stakater.Secret, Name: "s", Hash: "h"}},
		"empty":            {"", stakater.Reloaded{}},
		"null":             {"null", stakater.Reloaded{}},
		"a list":           {"[" + full.Text() + "]", stakater.Reloaded{}},
		"cut":              {strings.TrimSuffix(full.Text(), "}"), stakater.Reloaded{}},
		"two":              {full.Text() + full.Text(), stakater.Reloaded{}},
		"no type":          {`{"name":"s","hash":"h"}`, stakater.Reloaded{}},
		"another type":     {`{"type":"secret","name":"s","hash":"h"}`, stakater.Reloaded{}},
		"no name":          {`{"type":"SECRET","hash":"h"}`, stakater.Reloaded{}},
		"no hash":          {`{"type":"SECRET","name":"s"}`, stakater.Reloaded{}},
		"wrong kinds":      {`{"type":"SECRET","name":["s"],"hash":"h"}`, stakater.Reloaded{}},
		"a time with dots": {`{"type":"SECRET","name":"s","hash":"h","observedAt":1.5}`, stakater.Reloaded{}},
		"deep":             {strings.Repeat("[", 8000), stakater.Reloaded{}},
		"long":             {`{"type":"SECRET","name":"s","hash":"` + strings.Repeat("h", 100_000) + `"}`, stakater.Reloaded{}},
	} {
		got, ok := stakater.ParseReloaded(tc.text)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if wantOK := tc.want.Name != ""; ok != wantOK {
			t.Errorf("%s: ok is %t", name, ok)
		}
	}
}

func FuzzParseReloaded(f *testing.F) {
	f.Add(`{"type":"SECRET","name":"db","namespace":"prod","hash":"aae4","containerRefs":["web"],"observedAt":1700000060}`)
	f.Add(`{"type":"CONFIGMAP","name":"<&>","hash":"","containerRefs":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		first, ok := stakater.ParseReloaded(text)
		if !ok {
			return
		}
		second, ok := stakater.ParseReloaded(first.Text())
		if diff := cmp.Diff(first, second); !ok || diff != "" {
			t.Errorf("read, written and read again (-first +second):\n%s", diff)
		}
	})
}
