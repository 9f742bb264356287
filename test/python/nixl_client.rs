// An unmodified client of the crate nixl-sys: its metadata goes by files, its bytes by NIXL. See nixl_rust_test.py.
// usage: client ROLE FOLDER

use nixl_sys::*;
use std::{env, fs, path::Path, thread::sleep, time::Duration};

const SIZE: usize = 100_000;

fn publish(folder: &str, role: &str, bytes: &[u8]) {
    fs::write(format!("{folder}/{role}.part"), bytes).unwrap();
    fs::rename(format!("{folder}/{role}.part"), format!("{folder}/{role}")).unwrap();
}

fn wait_for(folder: &str, what: &str) -> Vec<u8> {
    let place = format!("{folder}/{what}");
    while !Path::new(&place).exists() {
        sleep(Duration::from_millis(20));
    }
    fs::read(place).unwrap()
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let (role, folder) = (words[1].as_str(), words[2].as_str());
    let agent = Agent::new(role).unwrap();
    let (_, params) = agent.get_plugin_params("UCX").unwrap();
    let backend = agent.create_backend("UCX", &params).unwrap();
    let mut options = OptArgs::new().unwrap();
    options.add_backend(&backend).unwrap();
    let mut storage = SystemStorage::new(SIZE).unwrap();
    storage.memset(if role == "prefill" { b'w' } else { 0 });
    storage.register(&agent, None).unwrap();
    if role == "decode" {
        let address = unsafe { storage.as_ptr() } as usize;
        publish(folder, "address", address.to_string().as_bytes());
        publish(folder, "metadata", &agent.get_local_md().unwrap());
        let mut notifications = NotificationMap::new().unwrap();
        while notifications.is_empty().unwrap() {
            agent.get_notifications(&mut notifications, None).unwrap();
            sleep(Duration::from_millis(2));
        }
        let whole = storage.as_slice().iter().all(|&each| each == b'w');
        println!("{:?} {whole}", notifications.take_notifs().unwrap());
        publish(folder, "over", b"");
        return;
    }
    let name = agent.load_remote_md(&wait_for(folder, "metadata")).unwrap();
    let address: usize = String::from_utf8(wait_for(folder, "address")).unwrap().parse().unwrap();
    let mut here = XferDescList::new(MemType::Dram).unwrap();
    here.add_storage_desc(&storage).unwrap();
    let mut there = XferDescList::new(MemType::Dram).unwrap();
    there.add_desc(address, SIZE, 0);
    options.set_has_notification(true).unwrap();
    options.set_notification_message(b"written").unwrap();
    let request = agent.create_xfer_req(XferOp::Write, &here, &there, &name, Some(&options)).unwrap();
    agent.post_xfer_req(&request, None).unwrap();
    while !agent.get_xfer_status(&request).unwrap().is_success() {
        sleep(Duration::from_millis(2));
    }
    println!("done");
    wait_for(folder, "over");
}
