// A client of `hubauth oracle` in Go: a small hub is judged step by step.
//
//	go run oracle_client.go            starts `hubauth oracle` itself
//	go run oracle_client.go -reuse     the hub issues the same credential again: a fault
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
)

type object = map[string]any

// oracle is a conversation: one line of JSON each way.
type oracle struct {
	requests *json.Encoder
	answers  *bufio.Scanner
}

func start() (*oracle, error) {
	process := exec.Command("hubauth", "oracle")
	process.Stderr = os.Stderr
	stdin, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	answers := bufio.NewScanner(stdout)
	answers.Buffer(nil, 64<<20)
	return &oracle{json.NewEncoder(stdin), answers}, process.Start()
}

func (o *oracle) ask(request object) object {
	if err := o.requests.Encode(request); err != nil {
		log.Fatal(err)
	}
	if !o.answers.Scan() {
		log.Fatal("the oracle hung up: ", o.answers.Err())
	}
	var answer object
	if err := json.Unmarshal(o.answers.Bytes(), &answer); err != nil {
		log.Fatal(err)
	}
	if answer["did"] == "error" {
		log.Fatal(answer["error"])
	}
	return answer
}

// smallHub is the hub under test: a root that knows how to register a device, and nothing else.
type smallHub struct {
	nodes      map[string]int
	credential string
	reuse      bool
}

func (h *smallHub) register(link, msgID int, device string) []object {
	if _, known := h.nodes[device]; !known {
		h.nodes[device] = len(h.nodes) + 2
	}
	if h.credential == "" || !h.reuse {
		secret := make([]byte, 32)
		rand.Read(secret)
		h.credential = base64.RawURLEncoding.EncodeToString(secret)
	}
	data := object{"code": 1, "msg": "ok", "device_id": device, "node_id": h.nodes[device],
		"credential": h.credential, "role": "node", "perms": []string{}}
	return []object{{"kind": "send", "link": link, "header": object{"major": 0, "msg_id": msgID, "source": 1},
		"payload": object{"action": "register_resp", "data": data}}}
}

func main() {
	oracle, err := start()
	if err != nil {
		log.Fatal("no oracle: ", err)
	}
	hub := &smallHub{nodes: map[string]int{}, reuse: len(os.Args) > 1 && os.Args[1] == "-reuse"}
	oracle.ask(object{"do": "init", "policy": object{"dialect": "auth"}})
	oracle.ask(object{"do": "compare", "input": object{"kind": "link_up", "link": 1}, "outputs": []object{}})
	for msgID := 1; msgID <= 2; msgID++ {
		input := object{"kind": "frame", "link": 1, "header": object{"msg_id": msgID},
			"payload": object{"action": "register", "data": object{"device_id": "sensor"}}}
		answer := oracle.ask(object{"do": "compare", "input": input, "outputs": hub.register(1, msgID, "sensor")})
		fmt.Println("register sensor:", answer["verdict"])
		if why, wrong := answer["why"].(object); wrong {
			fmt.Printf("  %v: %v\n  expected %v\n  seen     %v\n", why["rule"], why["text"], why["expected"], why["seen"])
			os.Exit(1)
		}
	}
}
