# Functions for scripts that need a real S3-compatible server on this machine. Source it; the caller has `set -euo pipefail`.
#
#   store_program NAME            prints the program of versitygw or minio; builds it with Go, once, if it is not installed
#   store_begin PROGRAM FOLDER    starts the server with its data in a folder; sets AWS_… for clients, and `endpoint`
#   store_bucket NAME             makes a bucket
#   store_kill, store_start       kills the server, and starts it again with the same data

versitygw_package=github.com/versity/versitygw/cmd/versitygw@v1.8.0
minio_package=github.com/minio/minio@latest

store_program() { # NAME
    local name=$1 folder=${CARGO_TARGET_DIR:-$PWD/target}/stores package
    package=${name}_package
    # The functions below need it.
    if ! command -v curl >/dev/null; then
        echo "$folder/$name, nor curl"
        return 0
    fi
    command -v "$name" && return 0
    if ! [ -x "$folder/$name" ] && command -v go >/dev/null; then
        mkdir -p "$folder"
        echo "building $name with Go, once" >&2
        GOBIN=$folder go install "${!package}" >&2 || true
    fi
    # The caller says so if there is no program.
    echo "$folder/$name"
}

store_begin() { # PROGRAM FOLDER
    store_server=$1 store_folder=$2 store_kind=$(basename "$1")
    local port
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    store_address=127.0.0.1:$port endpoint=http://127.0.0.1:$port
    export AWS_ENDPOINT_URL=$endpoint AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=mangrove-test AWS_SECRET_ACCESS_KEY
    AWS_SECRET_ACCESS_KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    mkdir -p "$store_folder/data"
    store_start
}

store_start() {
    local server
    case $store_kind in
    versitygw*)
        ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
            "$store_server" --port "$store_address" posix "$store_folder/data" >>"$store_folder/log" 2>&1 &
        ;;
    minio*)
        MINIO_ROOT_USER=$AWS_ACCESS_KEY_ID MINIO_ROOT_PASSWORD=$AWS_SECRET_ACCESS_KEY \
            "$store_server" server --address "$store_address" "$store_folder/data" >>"$store_folder/log" 2>&1 &
        ;;
    *)
        echo "$store_server is neither versitygw nor minio, and these scripts know how to start only these" >&2
        return 2
        ;;
    esac
    server=$!
    # In a file, because it may be killed by another shell than the one that has started it.
    echo $server >"$store_folder/server"
    for _ in $(seq 300); do
        if ! kill -0 "$server" 2>/dev/null; then break; fi
        if [ "$(store_request GET '')" = 200 ]; then return 0; fi
        sleep 0.1
    done
    echo "$store_kind did not start:" >&2
    tail -n 20 "$store_folder/log" >&2
    return 1
}

store_kill() {
    local server
    if server=$(cat "${store_folder:-/nowhere}/server" 2>/dev/null); then
        kill -9 "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
}

store_bucket() { # NAME
    local made
    made=$(store_request PUT "$1")
    if [ "$made" != 200 ]; then
        echo "$store_kind answered $made when the bucket $1 was to be made" >&2
        return 1
    fi
}

# A request with a signature and without a body. Prints the status.
store_request() { # METHOD PATH
    local empty
    empty=$(printf '' | sha256sum | cut -d ' ' -f 1)
    curl --silent --output /dev/null --write-out '%{http_code}' --max-time 5 --aws-sigv4 aws:amz:us-east-1:s3 \
        --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" --header "x-amz-content-sha256: $empty" --request "$1" "$endpoint/$2" || true
}
